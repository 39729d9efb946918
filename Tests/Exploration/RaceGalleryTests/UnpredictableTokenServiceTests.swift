import AccessTokens
import AccessTokensTesting
import RaceGallery
import Testing

/// The first stage is used by one test at a time, one call after the other, and so are its loader's answers.
@Suite struct `Stage 1, unpredictable` {
    let clock = ManualClock()
    let loader = ScriptedLoader()
    let answers = Log<Answer>()

    func ask(_ service: UnpredictableTokenService?) {
        service?.retrieveToken { [answers] in answers.append($0) }
    }

    @Test func `stage 1 hands over a valid token without a load, on the caller's own stack`() async throws {
        let service = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        try await loader.nextCall().succeed(with: AccessToken("a", lifetime: .seconds(60)))
        ask(service)
        #expect(answers.tokens == ["a", "a"])
        clock.advance(by: .seconds(60))
        ask(service)
        #expect(loader.loadCount == 2)
    }

    @Test func `flaw of stage 1: two calls before the first load ends start two loads`() {
        let service = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        ask(service)
        #expect(loader.loadCount == 2)
    }

    @Test func `flaw of stage 1: the first of two callers holds a token that the server has revoked`() {
        let stage = Stage()
        let server = SimulatedAuthorizationServer(clock: clock, latency: .seconds(1), executor: stage)
        let service = UnpredictableTokenService(loader: server.loader, clock: clock)
        ask(service)
        ask(service)
        stage.run()
        clock.advance(by: .seconds(1))
        stage.run()
        #expect(answers.entries.map { (try? $0.get()).map(server.accepts) } == [false, true])
    }

    @Test func `flaw of stage 1: answers come in the order in which the loads end, and the last is kept`() async throws {
        let service = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        ask(service)
        let (first, second) = (try await loader.nextCall(), try await loader.nextCall())
        second.succeed(with: AccessToken("second"))
        first.succeed(with: AccessToken("first"))
        ask(service)
        #expect(answers.tokens == ["second", "first", "first"])
    }

    @Test func `flaw of stage 1: a loader that answers twice answers its caller twice`() async throws {
        let service = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        let call = try await loader.nextCall()
        call.succeed(with: AccessToken("a"))
        call.succeed(with: AccessToken("b"))
        #expect(answers.tokens == ["a", "b"])
    }

    @Test func `flaw of stage 1: a sign-out during a load is undone by the load's result`() async throws {
        let service = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        service.signOut()
        try await loader.nextCall().succeed(with: AccessToken("from before"))
        ask(service)
        #expect(answers.tokens == ["from before", "from before"])
    }

    @Test func `stage 1 doesn't cache a failure, and answers even after its release`() async throws {
        var service: UnpredictableTokenService? = UnpredictableTokenService(loader: loader, clock: clock)
        ask(service)
        try await loader.nextCall().fail(with: ScriptedFailure.transient)
        ask(service)
        service = nil
        try await loader.nextCall().succeed(with: AccessToken("a"))
        #expect(answers.tokens == ["temporarily unavailable", "a"])
    }
}
