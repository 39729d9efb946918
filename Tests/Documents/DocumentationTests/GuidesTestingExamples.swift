import AccessTokens
import AccessTokensTesting
import TestBudgets
import Testing

// The Swift blocks of `TestingYourCode` about one screen, unchanged, and run.

actor ReportScreen {
    enum State: Equatable {
        case empty, loading, shown(String), signIn, failed
    }

    private(set) var state = State.empty
    private let tokens: TokenService

    init(tokens: TokenService) {
        self.tokens = tokens
    }

    func appear() async {
        state = .loading
        do {
            let token = try await tokens.retrieveToken(
                within: .seconds(10))
            state = .shown("report for \(token.value)")
        } catch let error as TokenServiceError
            where error.remedy == .signIn
        {
            state = .signIn
        } catch {
            state = .failed
        }
    }
}

@Suite(.inRealTime) struct `The guide to testing` {
    @Test func `waits for the token, then shows the report`() async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(
            environment: .init(clock: ManualClock()), loader: loader)
        let screen = ReportScreen(tokens: tokens)
        async let appearance: Void = screen.appear()

        let call = try await loader.nextCall()  // so the load has begun
        #expect(await screen.state == .loading)

        call.succeed(with: AccessToken("first"))
        await appearance
        #expect(await screen.state == .shown("report for first"))
    }

    @Test(arguments: [
        (ScriptedFailure(), ReportScreen.State.failed),
        (ScriptedFailure(.signIn), .signIn),
    ])
    func `tells a refused grant from a bad network`(
        failure: ScriptedFailure, state: ReportScreen.State
    ) async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(
            environment: .init(clock: ManualClock()), loader: loader)
        let screen = ReportScreen(tokens: tokens)
        async let appearance: Void = screen.appear()
        try await loader.nextCall().fail(with: failure)
        await appearance
        #expect(await screen.state == state)
    }

    @Test func `waits ten seconds and no longer`() async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let tokens = TokenService(
            environment: .init(clock: clock), loader: loader)
        let screen = ReportScreen(tokens: tokens)
        async let appearance: Void = screen.appear()

        // The screen's limit and the load's.
        try await clock.waitForSleepers(2)
        clock.advance(by: .seconds(10))
        await appearance
        #expect(await screen.state == .failed)
    }

    @Test func `asks to sign in when the session has ended`() async throws {
        let clock = ManualClock()
        let server = SimulatedAuthorizationServer(
            clock: clock, rotatesRefreshTokens: true)
        let tokens = TokenService(
            environment: .init(clock: clock), loader: server.loader)
        await tokens.replace(with: server.signIn())
        server.revokeAll()
        clock.advance(by: .seconds(3600))

        let screen = ReportScreen(tokens: tokens)
        await screen.appear()
        #expect(await screen.state == .signIn)
    }

    @Test func `an hour of requests costs one load`() async throws {
        let clock = ManualClock()
        let server = SimulatedAuthorizationServer(clock: clock, latency: .seconds(2))
        let tokens = TokenService(
            environment: .init(clock: clock), loader: server.loader)
        async let token = tokens.retrieveToken()
        try await clock.waitForSleepers(2)  // the answer on its way, and the load's limit
        clock.advance(by: .seconds(2))
        #expect(server.accepts(try await token))
        for _ in 0..<40 {
            clock.advance(by: .seconds(60))
            #expect(server.accepts(try await tokens.retrieveToken()))
        }
        #expect(server.loadsStarted == 1)
    }
}
