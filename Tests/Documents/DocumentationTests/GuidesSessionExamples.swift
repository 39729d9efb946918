import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// “Signing in and out”, run. `GuideTests` compares the page with this file.

private struct Session {
    let tokens: TokenService
    let client: OAuthClient
    let revocationURL: URL
    let log: GuideLog

    func signIn(with answer: (access: String, refresh: String)) async {
        await tokens.replace(
            with: AccessToken(
                answer.access, lifetime: .seconds(3600),
                refreshToken: answer.refresh))
    }

    func signOut() async {
        let change = await tokens.reset()
        if let failure = change.storeFailure {
            log.add("the store may still have the token: \(failure)")
        }
        for token in change.discarded {
            do {
                try await client.revoke(token, at: revocationURL)
            } catch {
                log.add("the server was not told: \(error)")
            }
        }
    }

    func start(showSignIn: () async -> Void) async {
        switch await tokens.signInState().code {
        case .signedOut: await showSignIn()
        case .unknown: log.add("the store can't be read now")
        default: log.add("welcome back")
        }
    }

    func mistakenSignOut() async {
        if let token = tokens.cachedToken { await tokens.invalidate(token) }
    }

    func change(to tokenOfBen: AccessToken) async {
        await signOut()
        await tokens.replace(with: tokenOfBen)
    }
}

extension Session {
    static func revoking(
        by client: OAuthClient, at revocationURL: URL, store: some TokenStore, loader: some TokenLoader, log: GuideLog
    ) -> TokenService {
        let tokens = TokenService(
            store: store,
            onDiscard: { grant in
                guard grant.reason == .signedOut else { return }
                do {
                    try await client.revoke(grant.token, at: revocationURL)
                } catch {
                    log.add("the server was not told: \(error)")
                }
            },
            loader: loader)
        return tokens
    }
}

/// A revocation endpoint that reports the requests that it was sent.
private struct TellingTransport: TokenTransport {
    let forms = AsyncStream.makeStream(of: String.self)

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        forms.continuation.yield(String(decoding: request.body, as: UTF8.self))
        return TransportResponse(status: 200)
    }
}

/// A store that can't remove its token.
private struct FailingStore: TokenStore {
    @concurrent func load() async throws -> StoredToken? { nil }
    @concurrent func save(_ token: StoredToken) async throws {}
    @concurrent func remove() async throws { throw ScriptedFailure(message: "read-only") }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `Signing in and out` {
    private let log = GuideLog()
    private let transport = AnsweringTransport()

    private func session(_ tokens: TokenService) throws -> Session {
        let url = try #require(URL(string: "https://login.example/revoke"))
        let client = try OAuthClient(id: "app", tokenURL: url, transport: transport)
        return Session(tokens: tokens, client: client, revocationURL: url, log: log)
    }

    @Test func `a token from the sign-in is handed out without a load`() async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(loader: loader)
        try await session(tokens).signIn(with: (access: "a", refresh: "r"))
        #expect(try await tokens.retrieveToken().value == "a" && loader.loadCount == 0)
    }

    @Test func `a program asks at its start whether a user is signed in`() async throws {
        let store = ScriptedStore(), loader = ScriptedLoader(), session = try session(TokenService(store: store, loader: loader))
        await session.start { log.add("sign in") }
        await session.signIn(with: (access: "a", refresh: "r"))
        await session.start {}
        store.fail(.load)
        try await self.session(TokenService(store: store, loader: loader)).start {}
        #expect(log.lines == ["sign in", "welcome back", "the store can't be read now"] && loader.loadCount == 0)
    }

    @Test func `invalidating a token does not sign out, and the next caller gets a new token`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let tokens = TokenService(loader: server.loader)
        await tokens.replace(with: server.signIn())
        try await session(tokens).mistakenSignOut()
        #expect(server.accepts(try await tokens.retrieveToken()) && server.refreshes == 1)
    }

    @Test func `a sign-out drops token and grant, and has the grant revoked`() async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(loader: loader)
        let session = try session(tokens)
        await session.signIn(with: (access: "a", refresh: "r"))
        await session.signOut()
        #expect(tokens.cachedToken == nil && log.lines == [])
        #expect(transport.forms.lines.count == 1 && transport.forms.lines[0].contains("token=r"))
        let next = Task { try await tokens.retrieveToken() }
        #expect(try await loader.nextCall().previous == nil, "empty, not locked")
        next.cancel()
    }

    @Test func `a grant that arrives after the sign-out is revoked, too`() async throws {
        let telling = TellingTransport(), loader = ScriptedLoader()
        let url = try #require(URL(string: "https://login.example/revoke"))
        let client = try OAuthClient(id: "app", tokenURL: url, transport: telling)
        let tokens = Session.revoking(by: client, at: url, store: ScriptedStore(), loader: loader, log: log)
        let waiting = Task { try await tokens.retrieveToken() }
        let call = try await loader.nextCall()
        #expect(await tokens.reset().discarded.isEmpty)
        call.succeed(with: AccessToken("late", lifetime: .seconds(3600), refreshToken: "late-grant"))
        let form = await telling.forms.stream.first { _ in true }
        #expect(form?.contains("token=late-grant") == true)
        _ = await waiting.result
    }

    @Test func `with a failing store a sign-out still takes effect, and the grant is revoked`() async throws {
        let tokens = TokenService(store: FailingStore(), loader: ScriptedLoader())
        let session = try session(tokens)
        await session.signIn(with: (access: "a", refresh: "r"))
        await session.signOut()
        #expect(tokens.cachedToken == nil && log.lines.count == 1)
        #expect(transport.forms.lines.count == 1 && transport.forms.lines[0].contains("token=r"))
    }

    @Test(arguments: [true, false])
    func `a caller waiting for Anna's token gets Ben's, unless a sign-out comes between`(signsOut: Bool) async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(loader: loader)
        let waiting = Task { try await tokens.retrieveToken() }
        let call = try await loader.nextCall()
        let ben = AccessToken("Ben's")
        if signsOut {
            try await session(tokens).change(to: ben)
            let error = await #expect(throws: TokenServiceError.self) { try await waiting.value }
            #expect(error?.code == .reset)
        } else {
            await tokens.replace(with: ben)
            #expect(try await waiting.value.value == "Ben's")
        }
        call.succeed(with: AccessToken("Anna's"))
        #expect(try await tokens.retrieveToken().value == "Ben's")
    }

    @Test func `a screen gets a message when the grant is refused, and at no other event`() async throws {
        try await failTwice().value
        #expect(log.lines == ["sign in"])
    }

    /// Returns the listener, which ends with the service, at the end of this function.
    private func failTwice() async throws -> Task<Void, Never> {
        let loader = ScriptedLoader()
        let tokens = TokenService(loader: loader)
        let showSignIn: @Sendable () async -> Void = { [log] in log.add("sign in") }
        let events = tokens.events()
        let listener = Task {
            for await event in events where event.error?.remedy == .signIn {
                await showSignIn()
            }
        }
        for failure in [ScriptedFailure(), ScriptedFailure(.signIn)] {
            async let token = tokens.retrieveToken()
            try await loader.nextCall().fail(with: failure)
            _ = try? await token
        }
        return listener
    }

    @Test(arguments: [(Date.distantPast, ["sign in"]), (.distantFuture, []), (nil, [])])
    func `a user is asked to sign in before the refresh token expires`(end: Date?, lines: [String]) async throws {
        let tokens = TokenService { _ in AccessToken("a", refreshToken: "r", refreshTokenExpiration: end) }
        let showSignIn: @Sendable () async -> Void = { [log] in log.add("sign in") }
        let tomorrow = Date()
        let token = try await tokens.retrieveToken()
        if let end = token.refreshTokenExpiration, end < tomorrow {
            await showSignIn()
        }
        #expect(log.lines == lines)
    }
}
