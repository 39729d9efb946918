import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 15 with a shared grant")
struct SharedUrgencyTests {
    @Test(arguments: [true, false])
    func `a load is as urgent as a caller who joined while the record was read, or later`(isEarly: Bool) {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader()
        let service = TokenService(
            sharedStore: SimulatedSharedStore(clock: clock, latency: .seconds(1)), environment: .driven(by: stage, clock: clock),
            loader: loader)
        let next = stage.start { try await loader.nextCall() }
        _ = stage.start(priority: .background) { try await service.retrieveToken() }
        if isEarly { _ = stage.start(priority: .high) { try await service.retrieveToken() } }
        for _ in 1...10 where next.value == nil {
            clock.advance(by: .seconds(1))
            stage.run()
        }
        if !isEarly { _ = stage.start(priority: .high) { try await service.retrieveToken() } }
        #expect(next.value?.priority == .high)
    }
}
