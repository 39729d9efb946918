import AccessTokens
import AccessTokensTesting
import TestBudgets
import Testing

// The mistaken loaders of “Writing a loader”, run. `GuideTests` compares the page with this file.

private actor Backend {
    private(set) lazy var tokens = TokenService {
        [unowned backend = self] _ in
        try await backend.logIn()
    }

    func send(_ path: String) async throws -> String {
        let token = try await tokens.retrieveToken()
        return "\(path) as \(token.value)"
    }

    func logIn() async throws -> AccessToken {
        AccessToken(try await send("/login"))  // which asks for a token
    }
}

private struct RetryingLoader<Login: TokenLoader>: TokenLoader {
    let login: Login

    @concurrent func loadToken(
        replacing previous: AccessToken?
    ) async throws -> AccessToken {
        do {
            return try await login.loadToken(replacing: previous)
        } catch {
            // The same refresh token again.
            return try await login.loadToken(replacing: previous)
        }
    }
}

/// A transport that loses the first answer: the server has rotated the refresh token, but the client can't know.
private struct LossyLoader<Login: TokenLoader>: TokenLoader {
    let login: Login
    let lost = GuideLog()

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let token = try await login.loadToken(replacing: previous)
        guard lost.lines.isEmpty else { return token }
        lost.add(token.value)
        throw ScriptedFailure()
    }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `Writing a loader: what it must not do` {
    @Test func `a loader that asks its own service gets an error at once`() async {
        let backend = Backend()
        let error = await #expect(throws: TokenServiceError.self) { try await backend.send("/reports") }
        #expect((error?.underlying as? TokenServiceError)?.code == .loaderWaitsForItself)
    }

    @Test func `a loader that retries presents a rotated refresh token twice, and the session ends`() async {
        let server = SimulatedAuthorizationServer(rotatesRefreshTokens: true)
        let tokens = TokenService(loader: RetryingLoader(login: LossyLoader(login: server.loader)))
        await Self.signIn(at: server, tokens)
        let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(error?.remedy == .signIn && server.reuseDetected == 1)
    }

    @Test func `a loader that loses an answer leaves the next caller with a spent refresh token`() async {
        let server = SimulatedAuthorizationServer(rotatesRefreshTokens: true)
        let tokens = TokenService(loader: LossyLoader(login: server.loader))
        await Self.signIn(at: server, tokens)
        let first = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(first?.remedy == .retry && server.reuseDetected == 0)
        let second = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(second?.remedy == .signIn && server.reuseDetected == 1)
    }

    @Test(arguments: [true, false])
    func `after the time limit only a repeatable load is repeated`(isRepeatable: Bool) async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader(isRepeatable: isRepeatable)
        let tokens = TokenService(environment: .init(clock: clock), loader: loader)
        let first = Task { try await tokens.retrieveToken() }
        _ = try await loader.nextCall()
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(30))
        let timedOut = await #expect(throws: TokenServiceError.self) { try await first.value }
        #expect(timedOut?.code == .loadTimedOut)
        if isRepeatable {
            async let second = tokens.retrieveToken()
            try await loader.nextCall().succeed(with: AccessToken("b"))
            #expect(try await second.value == "b")
        } else {
            let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect(error?.code == .loadTimedOut && loader.loadCount == 1)
        }
    }

    /// There is a grant without a usable access token, so the next caller loads.
    private static func signIn(at server: SimulatedAuthorizationServer, _ tokens: TokenService) async {
        let token = server.signIn()
        await tokens.replace(with: token)
        await tokens.invalidate(token)
    }
}
