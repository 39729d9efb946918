import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct SimulatedAuthorizationServerTests {
    let stage = Stage()
    let clock = ManualClock()

    private func load(_ server: SimulatedAuthorizationServer, _ previous: AccessToken? = nil) -> Stage.Player<AccessToken> {
        stage.start { try await server.loader.loadToken(replacing: previous) }
    }

    @Test func `tokens have predictable names, and the server accepts only its own`() {
        let server = SimulatedAuthorizationServer(clock: clock)
        let session = server.signIn()
        #expect(session.value == "access-1")
        #expect(session.refreshToken == "refresh-1")
        #expect(load(server).value?.value == "access-2")
        #expect(load(server).value?.refreshToken == nil)
        #expect(server.accepts(session))
        #expect(!server.accepts(AccessToken("access-4")))
        #expect(server.loadsStarted == 2)
        #expect(server.tokensIssued == 3)
        #expect(server.refreshes == 0)
    }

    @Test(arguments: [true, false])
    func `a later token of the session revokes the earlier one, if the server keeps one valid`(_ keepsOne: Bool) throws {
        let server = SimulatedAuthorizationServer(clock: clock, keepsOneTokenValid: keepsOne)
        let other = server.signIn()
        let (first, second) = (try #require(load(server).value), try #require(load(server).value))
        #expect(server.accepts(first) == !keepsOne)
        #expect(server.accepts(second))
        #expect(server.accepts(other))
        #expect(server.tokensRevokedWhileValid == (keepsOne ? 1 : 0))
    }

    @Test func `a new token in place of an expired or revoked one isn't counted as revoking a valid one`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, tokenLifetime: .seconds(60))
        _ = load(server)
        clock.advance(by: .seconds(60))
        server.revoke(try #require(load(server).value))
        _ = load(server)
        #expect(server.tokensRevokedWhileValid == 0)
    }

    @Test(arguments: [(Duration.seconds(60) - .nanoseconds(1), true), (.seconds(60), false)])
    func `a token expires when its lifetime has passed, not before`(_ age: Duration, _ isAccepted: Bool) throws {
        let server = SimulatedAuthorizationServer(clock: clock, tokenLifetime: .seconds(60))
        let token = try #require(load(server).value)
        #expect(token.lifetime == .seconds(60))
        clock.advance(by: age)
        #expect(server.accepts(token) == isAccepted)
    }

    @Test func `a token without a lifetime is valid until revoked`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, tokenLifetime: nil)
        let token = server.signIn()
        clock.advance(by: .seconds(1_000_000_000))
        #expect(server.accepts(token))
        server.revoke(token)
        #expect(!server.accepts(token))
        #expect(load(server, token).value != nil)
    }

    @Test func `an exchange takes effect when its load begins, and its answer arrives one latency later`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, latency: .seconds(5))
        let slow = load(server)
        server.latency = .seconds(1)
        let quick = load(server)
        #expect(server.tokensIssued == 2)
        clock.advance(by: .seconds(1))
        stage.run()
        #expect(server.accepts(try #require(quick.value)))
        #expect(!slow.isDone)
        clock.advance(by: .seconds(4))
        stage.run()
        // The first load's answer arrives last, when its token has already been displaced.
        #expect(slow.value?.value == "access-1")
        #expect(!server.accepts(try #require(slow.value)))
    }

    @Test func `a load that is cancelled while its answer is on the way has still used the server`() {
        let server = SimulatedAuthorizationServer(clock: clock, latency: .seconds(1))
        let cancelled = load(server)
        cancelled.cancel()
        stage.run()
        #expect(cancelled.isCancelledWithError)
        #expect(server.tokensIssued == 1)
    }

    @Test func `without rotation a refresh token stays good`() throws {
        let server = SimulatedAuthorizationServer(clock: clock)
        let session = server.signIn()
        for _ in 1...2 { #expect(load(server, session).value?.refreshToken == "refresh-1") }
        #expect(server.refreshes == 2)
        #expect(server.loader.isRepeatable)
    }

    @Test func `with rotation each refresh hands on a new refresh token`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        let second = try #require(load(server, server.signIn()).value)
        #expect(second.refreshToken == "refresh-2")
        #expect(load(server, second).value?.refreshToken == "refresh-3")
        #expect(server.refreshes == 2)
        #expect(server.reuseDetected == 0)
        #expect(!server.loader.isRepeatable)
    }

    @Test func `a refresh token presented twice ends its session, and no other`() throws {
        let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
        let (stolen, other) = (server.signIn(), server.signIn())
        let rightful = try #require(load(server, stolen).value)
        #expect(load(server, stolen).error as? ScriptedFailure == .grantRefused)
        #expect(server.reuseDetected == 1)
        #expect(!server.accepts(rightful))
        #expect(load(server, rightful).error as? ScriptedFailure == .grantRefused)
        #expect(load(server, stolen).error as? ScriptedFailure == .grantRefused)
        #expect(server.reuseDetected == 1)
        #expect(load(server, other).value != nil)
    }

    @Test func `a refresh token of another server is refused`() {
        let server = SimulatedAuthorizationServer(clock: clock)
        let foreign = AccessToken("access-1", refreshToken: "foreign")
        #expect(load(server, foreign).error as? ScriptedFailure == .grantRefused)
        #expect(server.tokensIssued == 0)
    }

    @Test func `revoking everything ends the sessions, but not the client's own`() throws {
        let server = SimulatedAuthorizationServer(clock: clock)
        let (session, own) = (server.signIn(), try #require(load(server).value))
        server.revokeAll()
        #expect(!server.accepts(session))
        #expect(!server.accepts(own))
        #expect(load(server, session).error as? ScriptedFailure == .grantRefused)
        #expect(server.accepts(try #require(load(server, own).value)))
        #expect(server.accepts(server.signIn()))
    }
}
