import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The loader under a service: rotating refresh tokens as seen by callers and by the server.
@Suite(.inRealTime)
struct RotationTests {
    let clock = ManualClock()

    func loader(_ transport: some TokenTransport) throws -> RefreshTokenLoader {
        try RefreshTokenLoader(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "app", transport: transport)
    }

    func service(_ transport: some TokenTransport) async throws -> TokenService {
        let service = TokenService(environment: .init(clock: clock), loader: try loader(transport))
        await service.replace(with: AccessToken("none", lifetime: .zero, refreshToken: "0"))
        return service
    }

    // RFC 6749 §6, RFC 9700 §4.14.2 (museum 11, 19): each refresh token is sent once, and the next one is the newest.
    @Test func `a hundred rotations under fifty callers use each refresh token once`() async throws {
        let server = RotatingServer()
        let service = try await service(server)
        for round in 1...100 {
            let values = try await withThrowingTaskGroup { group in
                for _ in 1...50 { group.addTask { try await service.retrieveToken().value } }
                var values: Set<String> = []
                for try await value in group { values.insert(value) }
                return values
            }
            #expect(values == ["token \(round)"])
            clock.advance(by: .seconds(60))
        }
        let sent = (0..<100).map { "\($0)" }
        #expect(server.received == sent)
    }

    // RFC 6749 §5.1: the lifetime began when the server answered, so its start is taken as the time of the request.
    @Test func `the lifetime counts from the request, not from the answer`() async throws {
        let transport = ScriptedTransport { [clock] in
            clock.advance(by: .seconds(20))
            return .token(#""expires_in":50,"refresh_token":"1""#)
        }
        let service = try await service(transport)
        let token = try await service.retrieveToken()
        #expect(transport.requests.count == 1)
        // Expiry 50 s after the request, less the leeway of 5 s.
        clock.advance(by: .seconds(24))
        #expect(service.cachedToken == token)
        clock.advance(by: .seconds(2))
        #expect(service.cachedToken == nil)
    }

    // RFC 6749 §5.2: callers get the error, and the server isn't asked again.
    @Test func `a refused grant costs one request, however many callers ask`() async throws {
        let transport = ScriptedTransport { TransportResponse(400, #"{"error":"invalid_grant"}"#) }
        let service = try await service(transport)
        for _ in 1...20 {
            let error = await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
            #expect(error?.remedy == .signIn)
            clock.advance(by: .seconds(3600))
        }
        #expect(transport.requests.count == 1)
    }

    // RFC 6749 §6: after an unusable answer with a new refresh token, the next attempt uses that token, but not at once: each
    // attempt spends one.
    @Test(arguments: [
        (#"{"token_type":"mac","access_token":"a","refresh_token":"1"}"#, 3600),
        (#"{"error":"temporarily_odd","refresh_token":"1"}"#, 60),
    ])
    func `a refresh token that came with an unusable token is used next, after a minute, or an hour if time won't help`(
        body: String, pause: Int
    ) async throws {
        let answers = Lock([body])
        let transport = ScriptedTransport {
            answers.withLock { $0.popLast() }.map { TransportResponse($0) } ?? .token(#""refresh_token":"2""#)
        }
        let store = TellingStore()
        let service = TokenService(store: store, environment: .init(clock: clock), loader: try loader(transport))
        var events = service.events().makeAsyncIterator()
        await service.replace(with: AccessToken("none", lifetime: .zero, refreshToken: "0"))
        for _ in 1...20 {
            let error = try await #require(throws: TokenServiceError.self) { try await service.retrieveToken() }
            #expect(error.code == .loadFailed, "the true reason")
            let reason = try #require(error.underlying as? OAuthError)
            #expect(reason.code == .unsupportedTokenType || reason.error == "temporarily_odd")
            clock.advance(by: .seconds(2))
        }
        #expect(transport.requests.count == 1)
        while let event = await events.next() {
            guard event.name == .loadFailed else { continue }
            #expect(event.error?.underlying is OAuthError, "no event has the grant")
            break
        }
        var saves = store.saves.makeAsyncIterator()
        #expect(await [saves.next(), saves.next()] == ["0", "1"], "it survives a crash")
        // 40 s have passed.
        clock.advance(by: .seconds(pause - 45))
        await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
        #expect(transport.requests.count == 1, "not before the pause has passed")
        clock.advance(by: .seconds(50))
        #expect(try await service.retrieveToken().refreshToken == "2")
        let forms = transport.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(forms.map { $0.contains("refresh_token=0") } == [true, false])
        #expect(forms.map { $0.contains("refresh_token=1") } == [false, true])
    }
}

/// A store that reports each save with its refresh token.
struct TellingStore: TokenStore {
    let saves: AsyncStream<String>
    private let saved: AsyncStream<String>.Continuation
    private let stored = StoredTokens()

    init() {
        (saves, saved) = AsyncStream.makeStream()
    }

    @concurrent func load() async -> StoredToken? { stored.token.withLock { $0 } }
    @concurrent func save(_ token: StoredToken) async {
        stored.token.withLock { $0 = token }
        saved.yield(token.token.refreshToken ?? "")
    }
    @concurrent func remove() async { stored.token.withLock { $0 = nil } }
}

private final class StoredTokens: Sendable {
    let token = Lock<StoredToken?>(nil)
}

/// A server that issues numbered refresh tokens, each good for one use.
final class RotatingServer: TokenTransport {
    private let tokens = Lock<[String]>([])

    /// The refresh tokens received, in order.
    var received: [String] { tokens.withLock { $0 } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let form = String(decoding: request.body, as: UTF8.self)
        let token = String(form.split(separator: "refresh_token=").last?.prefix { $0 != "&" } ?? "")
        let count = tokens.withLock { tokens in
            tokens.append(token)
            return tokens.count
        }
        guard token == String(count - 1) else { return TransportResponse(400, #"{"error":"invalid_grant"}"#) }
        let members = #""token_type":"Bearer","expires_in":60,"refresh_token":"\#(count)""#
        return TransportResponse(#"{"access_token":"token \#(count)",\#(members)}"#)
    }
}
