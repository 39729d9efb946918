import AccessTokens
import AccessTokensTesting
import RaceGallery
import Testing

/// The second stage, used correctly: one call after another.
///
/// The tests don't show two threads corrupting its array, since that is undefined behaviour. The compiler keeps the class, which
/// is not `Sendable`, on one thread.
@Suite struct `Stage 2, enqueueing` {
    let clock = ManualClock()
    let loader = ScriptedLoader()
    let answers = Log<Answer>()

    func ask(_ service: EnqueueingTokenService?) {
        service?.retrieveToken { [answers] in answers.append($0) }
    }

    @Test func `stage 2 starts one load for all callers and answers them in the order of their calls`() async throws {
        let service = EnqueueingTokenService(loader: loader, clock: clock)
        let order = Log<Int>()
        for caller in 1...5 { service.retrieveToken { _ in order.append(caller) } }
        try await loader.nextCall().succeed(with: AccessToken("a"))
        #expect(order.entries == [1, 2, 3, 4, 5])
        #expect(loader.loadCount == 1)
    }

    @Test func `stage 2 shares a failure with all waiting callers, and does not keep it`() async throws {
        let service = EnqueueingTokenService(loader: loader, clock: clock)
        ask(service)
        ask(service)
        try await loader.nextCall().fail(with: ScriptedFailure.transient)
        ask(service)
        try await loader.nextCall().succeed(with: AccessToken("a"))
        #expect(answers.tokens == ["temporarily unavailable", "temporarily unavailable", "a"])
    }

    @Test func `flaw of stage 2: released during a load, it answers no caller`() async throws {
        var service: EnqueueingTokenService? = EnqueueingTokenService(loader: loader, clock: clock)
        ask(service)
        service = nil
        try await loader.nextCall().succeed(with: AccessToken("a"))
        #expect(answers.tokens.isEmpty)
    }

    @Test func `flaw of stage 2: a sign-out during a load is undone by the load's result`() async throws {
        let service = EnqueueingTokenService(loader: loader, clock: clock)
        ask(service)
        service.signOut()
        try await loader.nextCall().succeed(with: AccessToken("from before"))
        ask(service)
        #expect(answers.tokens == ["from before", "from before"])
    }
}
