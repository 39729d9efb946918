import AccessTokens
import AccessTokensDPoP
import AccessTokensDiscovery
import AccessTokensOAuth
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import Synchronization
import Testing

// The Swift blocks of `ABlueskyClient` and `AccessTokensDPoP`, unchanged, and run.

/// Reads and writes as one account of the AT Protocol.
struct BlueskyClient {
    let tokens: TokenService
    let loader: DataLoader
    private let server: AuthorizationServer
    private let client: OAuthClient

    /// Finds the account's servers, before any user is signed in.
    ///
    /// - Parameters:
    ///   - host: The account's server (PDS), such as
    ///     `https://pds.example`.
    ///   - clientID: The URL of the client's metadata document.
    ///   - key: The key that all tokens are bound to.
    ///   - store: Keeps the sign-in between runs of the program.
    init(
        host: String, clientID: String, key: DPoPKey,
        store: any TokenStore
    ) async throws {
        guard let url = URL(string: host) else { throw URLError(.badURL) }
        let resource = try await ProtectedResource.discover(host)
        server = try await AuthorizationServer.discover(
            resource.authorizationServers[0])
        client = try server.client(id: clientID, proof: key)
        tokens = TokenService(
            store: store, loader: try RefreshTokenLoader(client))
        loader = DataLoaderFactory(
            tokens: try OriginTokens(tokens, for: [url], proof: key)
        ).makeLoader()
    }

    /// Signs the account in.
    ///
    /// - Parameters:
    ///   - account: The account's identifier (DID).
    ///   - redirectURI: The callback's address, as in the client's
    ///     metadata.
    ///   - browse: Opens a URL in a browser, and returns the callback.
    func signIn(
        account: String, redirectURI: String,
        browse: (URL) async throws -> URL
    ) async throws {
        let request = try await server.signIn(
            client, redirectURI: redirectURI,
            scope: "atproto transition:generic",
            additionalParameters: ["login_hint": account])
        let grant = try request.grant(from: await browse(request.url))
        let answer = try await client.token(for: grant)
        guard answer.members["sub"] == account else {
            throw OAuthError.signInNeeded
        }
        await tokens.replace(with: answer.token)
    }
}

@Suite struct `A Bluesky client` {
    /// Both servers of the AT Protocol on one origin, with a required nonce and one-time refresh tokens.
    private final class Server: Sendable {
        let shared = Shared()
        let server: LoopbackServer

        final class Shared: Sendable {
            let spent = Mutex<[String]>([])
            let requests = Mutex<[String]>([])
        }

        var host: String { "http://127.0.0.1:\(server.url.port ?? 0)" }

        init() throws {
            server = try LoopbackServer { [shared] text in Self.answer(text, shared) }
        }

        private static func answer(_ text: String, _ shared: Shared) -> LoopbackServer.Reply {
            let lines = text.components(separatedBy: "\r\n\r\n")[0].components(separatedBy: "\r\n")
            func header(_ name: String) -> String? {
                lines.first { $0.lowercased().hasPrefix("\(name): ") }.map { String($0.dropFirst(name.count + 2)) }
            }
            let target = text.split(separator: " ")[1], body = text.components(separatedBy: "\r\n\r\n")[1]
            shared.requests.withLock { $0.append(String(target)) }
            let origin = "http://\(header("host") ?? "")"
            switch target {
            case "/.well-known/oauth-protected-resource":
                return json(#"{"resource":"\#(origin)","authorization_servers":["\#(origin)"]}"#)
            case "/.well-known/oauth-authorization-server":
                return json(
                    #"{"issuer":"\#(origin)","token_endpoint":"\#(origin)/token","authorization_endpoint":"\#(origin)/authorize","#
                        + #""code_challenge_methods_supported":["S256"],"authorization_response_iss_parameter_supported":true,"#
                        + #""require_pushed_authorization_requests":true,"pushed_authorization_request_endpoint":"\#(origin)/par"}"#
                )
            default: break
            }
            let isAPI = target.hasPrefix("/xrpc/")
            guard let proof = header("dpop"), has("the-nonce", proof) else {
                let challenge = isAPI ? "WWW-Authenticate: DPoP error=\"use_dpop_nonce\"\r\n" : ""
                return json(#"{"error":"use_dpop_nonce"}"#, isAPI ? "401 No" : "400 No", "\(challenge)DPoP-Nonce: the-nonce\r\n")
            }
            if isAPI { return json(header("authorization")?.hasPrefix("DPoP access") ?? false ? "{}" : #"{"error":"no"}"#) }
            if target == "/par" {
                let state = body.split(separator: "&").first { $0.hasPrefix("state=") }?.dropFirst(6) ?? ""
                return json(#"{"request_uri":"urn:state:\#(state)","expires_in":60}"#, "201 Created")
            }
            if let refresh = body.split(separator: "&").first(where: { $0.hasPrefix("refresh_token=") }) {
                shared.spent.withLock { $0.append(String(refresh.dropFirst(14))) }
            }
            return json(
                #"{"access_token":"access-\#(UUID())","token_type":"DPoP","expires_in":60,"refresh_token":"\#(UUID())","sub":"did:plc:anna"}"#
            )
        }

        private static func has(_ nonce: String, _ proof: String) -> Bool {
            let part = proof.split(separator: ".")[1].replacing("-", with: "+").replacing("_", with: "/")
            let claims = Data(base64Encoded: part + String(repeating: "=", count: (4 - part.count % 4) % 4))
            return claims.map { String(decoding: $0, as: UTF8.self).contains(#""nonce":"\#(nonce)""#) } ?? false
        }

        private static func json(_ body: String, _ status: String = "200 OK", _ headers: String = "") -> LoopbackServer.Reply {
            .bytes(
                "HTTP/1.1 \(status)\r\n\(headers)Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
        }
    }

    @Test func `signs in, reads, and goes on after a restart, with each refresh token presented once`() async throws {
        let server = try Server(), store = ScriptedStore()
        let host = server.host
        func client() async throws -> BlueskyClient {
            let key = try DPoPKey(.p256(Data(repeating: 1, count: 64)), algorithm: "ES256") { _ in Data(repeating: 7, count: 64) }
            return try await BlueskyClient(host: host, clientID: "https://app.example/client.json", key: key, store: store)
        }
        let first = try await client()
        try await first.signIn(account: "did:plc:anna", redirectURI: "app:/in") { url in
            let place = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems?.first { $0.name == "request_uri" }?
                .value
            let state = place?.components(separatedBy: ":").last ?? ""
            return try #require(URL(string: "app:/in?code=c&state=\(state)&iss=\(host)"))
        }
        let profile = Request(url: try #require(URL(string: "\(host)/xrpc/app.bsky.actor.getProfile")))
        #expect(try await first.loader.perform(profile).status == 200)
        let second = try await client()
        for _ in 1...2 {
            await second.tokens.invalidate(try await second.tokens.retrieveToken())
            _ = try await second.tokens.retrieveToken()
        }
        #expect(try await second.loader.perform(profile).status == 200)
        let spent = server.shared.spent.withLock { $0 }
        #expect(Set(spent).count == spent.count && spent.count == 2)
        let other = await #expect(throws: OAuthError.self) {
            try await second.signIn(account: "did:plc:other", redirectURI: "app:/in") { url in
                let place = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems?.first {
                    $0.name == "request_uri"
                }
                return try #require(
                    URL(string: "app:/in?code=c&state=\(place?.value?.components(separatedBy: ":").last ?? "")&iss=\(host)"))
            }
        }
        #expect(other?.code == .notSignedIn)
    }

    private struct Chip: Sendable {
        func signature(for bytes: Data) async throws -> Data { Data(repeating: 7, count: 64) }
    }

    @Test func `the module's page creates a key, a client and loaders`() throws {
        let chip = Chip(), publicKey = Data(repeating: 1, count: 64), store = ScriptedStore()
        let url = try #require(URL(string: "https://id.example/token")), api = try #require(URL(string: "https://api.example"))
        let key = try DPoPKey(.p256(publicKey), algorithm: "ES256") { bytes in
            try await chip.signature(for: bytes)
        }
        let client = try OAuthClient(id: "app", tokenURL: url, proof: key)
        let tokens = TokenService(
            store: store, loader: try RefreshTokenLoader(client))
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(tokens, for: [api], proof: key))
        #expect("\(factory)".contains("https://api.example:443"))
    }
}
