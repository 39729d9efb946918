import TestBudgets
import Testing

@Suite("Guarantee 50 in a storm: the store has the server's current refresh token in the end")
struct StoreStormTests {
    @Test(arguments: StoreStorm.Form.allCases, [false, true])
    func `50: in every random life over a failing store, the store has what the server has when drain says so`(
        form: StoreStorm.Form, losesOperations: Bool
    ) {
        var exchanges = 0
        for seed in 1...UInt64.everyday(100, thorough: 2_000) {
            var storm = StoreStorm(form, seed: seed, losesOperations: losesOperations)
            storm.run()
            exchanges += storm.exchanges
            guard storm.problems.isEmpty else {
                let story = storm.steps.joined(separator: ", ")
                Issue.record("seed \(seed): \(storm.problems.joined(separator: "; ")) after \(story)")
                return
            }
        }
        #expect(exchanges > 100)
    }
}
