import AccessTokens
import AccessTokensTesting
import Testing

/// The requests of a rotation to its store, which may be on another host.
@Suite struct `A rotation's operations` {
    @Test(arguments: [1, 2, 4])
    func `are two swaps, and one for each other service, which gets the new token by its conflict`(services: Int) throws {
        let counter = CountingStore()
        let fleet = Fleet(services) { counter.over($0) }
        let swaps = Array(repeating: "swap", count: services + 1)
        for rotation in 0...3 {
            let before = counter.log.entries.count
            let first = fleet.call(0)
            fleet.succeed(try fleet.load(0), with: .granted("\(rotation)"))
            #expect(first.value?.value == "\(rotation)")
            for index in 1..<services { #expect(fleet.call(index).value?.value == "\(rotation)") }
            // In the first rotation each service also reads the record.
            if rotation > 0 { #expect(Array(counter.log.entries[before...]) == swaps) }
            fleet.advance(by: .seconds(3600))
        }
    }

    @Test func `begin with a read after a sign-in, which has put another record there`() throws {
        let counter = CountingStore()
        let fleet = Fleet(1) { counter.over($0) }
        _ = fleet.signIn(0, with: .granted("0"))
        fleet.advance(by: .seconds(3600))
        let before = counter.log.entries.count, call = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("1"))
        #expect(call.value?.value == "1" && Array(counter.log.entries[before...]) == ["load", "swap", "swap"])
    }
}
