import AccessTokens
import AccessTokensDPoP
import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import DataLoading
import Foundation
import Testing
import TokenServiceConcurrency

/// Tokens bound to a key, at a server that requires its own nonces and changes them every second request.
extension RealServerTests {
    /// The key whose private part `openssl` uses.
    private func key(wallClock: @escaping @Sendable () -> Date = { Date() }) async throws -> DPoPKey {
        let printed = try await server.modulus()
        var modulus = Data(), rest = Substring(printed)
        while let byte = UInt8(rest.prefix(2), radix: 16), rest.count >= 2 {
            modulus.append(byte)
            rest = rest.dropFirst(2)
        }
        return try DPoPKey(
            .rsa(modulus: modulus, exponent: Data([1, 0, 1])), algorithm: "RS256", wallClock: wallClock
        ) { [server] in try await server.signature(of: $0) }
    }

    /// Returns a client with a key, created from the server's metadata.
    private func boundClient(_ key: DPoPKey, over transport: any TokenTransport = URLSessionTransport()) async throws
        -> OAuthClient
    {
        let found = try await AuthorizationServer.discover(server.tokenURL.deletingLastPathComponent().absoluteString.trimmed)
        return try found.client(
            id: server.app.id, authentication: .clientSecretBasic(server.app.secret), proof: key, transport: transport)
    }

    private var password: Grant {
        var form: Form = ["username": server.user.name, "scope": server.scope]
        form.add("password", secret: server.user.password)
        return Grant(type: "password", form)
    }

    @Test func `a session with a key goes on, and presents each refresh token once except when a nonce is demanded`() async throws
    {
        let transport = CountingTransport(), key = try await key()
        let client = try await boundClient(key, over: transport)
        let first = try await client.token(for: password).token
        #expect(first.tokenType == "DPoP" && first.keyThumbprint == key.keyThumbprint)
        let tokens = TokenService(environment: .init(clock: clock), loader: try RefreshTokenLoader(client))
        await tokens.replace(with: first)
        for _ in 1...6 {
            clock.advance(by: server.lifetime)
            let token = try await tokens.retrieveToken()
            #expect(token.tokenType == "DPoP" && token.keyThumbprint == key.keyThumbprint)
        }
        // The server itself ends the session when a refresh token is presented twice.
        #expect(transport.answers.filter { $0 == 200 }.count == 7, "\(transport.answers)")
        #expect(transport.answers.filter { $0 != 200 }.count <= 7)
        #expect(transport.answers.contains(400), "it demands nonces")
    }

    @Test func `requests with a bound token carry a proof, and one with another key's proof is refused`() async throws {
        let key = try await key(), client = try await boundClient(key)
        let url = server.tokenURL.deletingLastPathComponent().appending(path: "userinfo")
        let tokens = TokenService(environment: .init(clock: clock), loader: try RefreshTokenLoader(client))
        await tokens.replace(with: try await client.token(for: password).token)
        let loader = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [url], proof: key)).makeLoader()
        for _ in 1...5 { #expect(try await loader.perform(Request(url: url)).status == 200) }
    }

    @Test func `a clock that is wrong by an hour is refused, and the error has both times`() async throws {
        let key = try await key(wallClock: { Date().addingTimeInterval(-3600) })
        let error = try await #require(throws: OAuthError.self) { try await boundClient(key).token(for: password) }
        #expect(error.error == "invalid_dpop_proof" && error.description.contains("Correct this machine's clock"), "\(error)")
    }
}

extension String {
    fileprivate var trimmed: String { hasSuffix("/") ? String(dropLast()) : self }
}

/// Notes the status of each answer.
private final class CountingTransport: TokenTransport {
    private let noted = Lock<[Int]>([])
    var answers: [Int] { noted.withLock { $0 } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let answer = try await URLSessionTransport().send(request)
        noted.withLock { $0.append(answer.status) }
        return answer
    }
}
