import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct SimulatedAuthorizationServerTroubleTests {
    let stage = Stage()
    let clock = ManualClock()

    private func load(_ server: SimulatedAuthorizationServer, _ previous: AccessToken? = nil) -> Stage.Player<AccessToken> {
        stage.start { try await server.loader.loadToken(replacing: previous) }
    }

    @Test(arguments: 0...3) func `as many loads fail as planned, and then loads succeed`(_ count: Int) {
        let server = SimulatedAuthorizationServer(clock: clock)
        server.failNext(count, with: ScriptedFailure.clientRefused)
        for _ in 0..<count { #expect(load(server).error as? ScriptedFailure == .clientRefused) }
        #expect(server.tokensIssued == 0)
        #expect(load(server).value?.value == "access-1")
        #expect(server.loadsStarted == count + 1)
    }

    @Test func `troubles come in the order in which they were planned`() {
        let server = SimulatedAuthorizationServer(clock: clock)
        server.failNext()
        server.loseNextResponses()
        server.failNext(with: ScriptedFailure.grantRefused)
        #expect(load(server).error as? ScriptedFailure == .transient)
        #expect(!load(server).isDone)
        #expect(load(server).error as? ScriptedFailure == .grantRefused)
        #expect(load(server).value != nil)
    }

    @Test func `failures take as long as answers`() {
        let server = SimulatedAuthorizationServer(clock: clock, latency: .seconds(1))
        server.failNext()
        let failing = load(server)
        #expect(!failing.isDone)
        clock.advance(by: .seconds(1))
        stage.run()
        #expect(failing.error as? ScriptedFailure == .transient)
    }

    @Test func `an unreachable server handles no refresh, and the failure is transient`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        let session = server.signIn()
        server.isReachable = false
        #expect((load(server, session).error as? any TokenLoadFailure)?.remedy == .retry)
        #expect(server.refreshes == 0)
        server.isReachable = true
        #expect(load(server, session).value?.refreshToken == "refresh-2")
        #expect(server.loadsStarted == 2)
    }

    @Test func `a lost answer has used up the refresh token`() {
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        let session = server.signIn()
        server.loseNextResponses()
        let lost = load(server, session)
        clock.advance(by: .seconds(86_400))
        stage.run()
        #expect(!lost.isDone)
        #expect(server.refreshes == 1)
        #expect(load(server, session).error as? ScriptedFailure == .grantRefused)
        #expect(server.reuseDetected == 1)
        lost.cancel()
        stage.run()
        #expect(lost.isCancelledWithError)
    }

    @Test func `a server that repeats its answers returns the same token, even when it is revoked`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        server.answersRepeatedToken = true
        let session = server.signIn()
        server.revoke(session)
        for _ in 1...2 { #expect(load(server, session).value == session) }
        #expect(!server.accepts(session))
        #expect(server.tokensIssued == 1)
        #expect(load(server).value?.value == "access-2")
        server.answersRepeatedToken = false
        #expect(load(server, session).value?.value == "access-3")
    }

    @Test func `a callback load without latency answers before it returns`() {
        let server = SimulatedAuthorizationServer(clock: clock)
        let answers = Log<String?>()
        server.loader.load { answers.append(try? $0.get().value) }
        #expect(answers.entries == ["access-1"])
        #expect(server.loader.isRepeatable)
    }

    @Test func `a callback load's answer takes its latency, even if the server is gone by then`() {
        var server: SimulatedAuthorizationServer? = .init(clock: clock, latency: .seconds(1), executor: stage)
        let answers = Log<String?>()
        server?.loader.load { answers.append(try? $0.get().value) }
        stage.run()
        #expect(answers.entries.isEmpty)
        weak let gone = server
        server = nil
        #expect(gone == nil)
        clock.advance(by: .seconds(1))
        stage.run()
        #expect(answers.entries == ["access-1"])
    }

    @Test func `a lost callback answer's handler is kept, without a call, as long as the server`() {
        var server: SimulatedAuthorizationServer? = .init(clock: clock)
        let answers = Log<String?>()
        server?.loseNextResponses()
        server?.loader.load { answers.append(try? $0.get().value) }
        weak let handlersLog = answers
        #expect(answers.entries.isEmpty)
        #expect(server?.tokensIssued == 1)
        server = nil
        #expect(handlersLog != nil)
    }

    @Test func `loads on real threads are decided one by one`() async {
        let server = SimulatedAuthorizationServer(tokenLifetime: nil)
        let tokens = await withTaskGroup(of: AccessToken?.self) { group in
            for _ in 1...500 { group.addTask { try? await server.loader.loadToken(replacing: nil) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(tokens).count == 500)
        #expect(tokens.compactMap { $0 }.filter(server.accepts).count == 1)
        #expect(server.tokensRevokedWhileValid == 499)
    }
}
