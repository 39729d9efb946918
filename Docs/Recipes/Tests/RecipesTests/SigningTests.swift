import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import Crypto
import CryptoExtras
import Foundation
import Synchronization
import Testing

@testable import SigningWithCrypto

@Suite struct `Assertions signed with swift-crypto` {
    /// The header, the claims, what was signed, and the signature.
    private struct Parts {
        let header: [String: String], claims: [String: Any], signed: Data, signature: Data

        init(_ assertion: String) throws {
            let parts = assertion.split(separator: ".").map(String.init)
            try #require(parts.count == 3)
            let decoded = try parts.map { part in
                let base64 = part.replacing("-", with: "+").replacing("_", with: "/")
                let padding = String(repeating: "=", count: (4 - base64.count % 4) % 4)
                return try #require(Data(base64Encoded: base64 + padding))
            }
            header = try JSONDecoder().decode([String: String].self, from: decoded[0])
            claims = try #require(try JSONSerialization.jsonObject(with: decoded[1]) as? [String: Any])
            signed = Data("\(parts[0]).\(parts[1])".utf8)
            signature = decoded[2]
        }
    }

    /// Keeps the assertion of one request, and answers it with an error.
    private final class Recorder: TokenTransport {
        let assertion = Mutex("")

        @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
            let form = String(decoding: request.body, as: UTF8.self).split(separator: "&")
            let value = form.first { $0.hasPrefix("client_assertion=") }?.dropFirst("client_assertion=".count)
            assertion.withLock { $0 = String(value ?? "") }
            return TransportResponse(status: 400)
        }
    }

    /// Returns what a client with this authentication sends.
    private func parts(_ authentication: ClientAuthentication) async throws -> Parts {
        let recorder = Recorder()
        let client = try OAuthClient(
            id: "reports", authentication: authentication, tokenURL: #require(URL(string: "https://login.example/token")),
            issuer: "https://login.example", transport: recorder)
        await #expect(throws: OAuthError.self) { try await client.token(for: .clientCredentials()) }
        return try Parts(recorder.assertion.withLock { $0 })
    }

    @Test func `an elliptic curve key signs as ES256, and its public key agrees`() async throws {
        let key = P256.Signing.PrivateKey()
        let parts = try await parts(.privateKeyJWT(signedBy: key, keyID: "2026-11"))
        #expect(parts.header == ["alg": "ES256", "kid": "2026-11", "typ": "JWT"])
        #expect(parts.claims["aud"] as? String == "https://login.example" && parts.claims["sub"] as? String == "reports")
        #expect(parts.signature.count == 64)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed))
        #expect(!P256.Signing.PrivateKey().publicKey.isValidSignature(signature, for: parts.signed))
    }

    @Test func `an RSA key signs as RS256, and its public key agrees`() async throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let parts = try await parts(.privateKeyJWT(signedBy: key))
        #expect(parts.header == ["alg": "RS256", "typ": "JWT"])
        let signature = _RSA.Signing.RSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed, padding: .insecurePKCS1v1_5))
    }

    @Test func `openssl agrees with the signature of an RSA key`() async throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let parts = try await parts(.privateKeyJWT(signedBy: key))
        let directory = FileManager.default.temporaryDirectory.appending(path: "signing-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (pem, signature, signed) = (
            directory.appending(path: "key.pem"), directory.appending(path: "signature"), directory.appending(path: "signed")
        )
        try key.publicKey.pemRepresentation.write(to: pem, atomically: true, encoding: .utf8)
        try parts.signature.write(to: signature)
        try parts.signed.write(to: signed)
        let openssl = Process()
        openssl.executableURL = URL(filePath: "/usr/bin/env")
        openssl.arguments = ["openssl", "dgst", "-sha256", "-verify", pem.path, "-signature", signature.path, signed.path]
        openssl.standardOutput = FileHandle.nullDevice
        try openssl.run()
        openssl.waitUntilExit()
        #expect(openssl.terminationStatus == 0)
    }
}

/// A Glewlwyd that `.ci/start-glewlwyd` has started.
private let realServer: [String: String]? = {
    let environment = ProcessInfo.processInfo.environment
    return environment["TOKEN_SERVER_URL"] == nil ? nil : environment
}()

@Suite(.enabled(if: realServer != nil, "start a Glewlwyd with Docs/Recipes/run"), .timeLimit(.minutes(1)))
struct `A real server verifies what swift-crypto has signed` {
    let server: [String: String], url: URL

    init() throws {
        server = try #require(realServer)
        url = try #require(URL(string: server["TOKEN_SERVER_URL"] ?? ""))
    }

    /// A client for which a user signs in, and whose tokens are bound to a key.
    func client(_ key: DPoPKey) throws -> OAuthClient {
        let (id, secret) = try (
            #require(server["TOKEN_SERVER_APP_CLIENT_ID"]), #require(server["TOKEN_SERVER_APP_CLIENT_SECRET"])
        )
        return try OAuthClient(id: id, authentication: .clientSecretBasic(secret), tokenURL: url, proof: key)
    }

    func password() throws -> Grant {
        var form: Form = [
            "username": try #require(server["TOKEN_SERVER_USER"]), "scope": try #require(server["TOKEN_SERVER_SCOPE"]),
        ]
        form.add("password", secret: try #require(server["TOKEN_SERVER_PASSWORD"]))
        return Grant(type: "password", form)
    }

    @Test func `proofs of an elliptic curve key, in a session that lives on`() async throws {
        let key = try DPoPKey(signedBy: P256.Signing.PrivateKey()), client = try client(key), clock = ManualClock()
        let first = try await client.token(for: password()).token
        #expect(first.tokenType == "DPoP" && first.keyThumbprint == key.keyThumbprint)
        let tokens = TokenService(environment: .init(clock: clock), loader: try RefreshTokenLoader(client))
        await tokens.replace(with: first)
        for _ in 1...4 {
            clock.advance(by: .seconds(3600))
            let token = try await tokens.retrieveToken()
            #expect(token.tokenType == "DPoP" && token.keyThumbprint == key.keyThumbprint)
        }
    }

    @Test func `a proof that another key has signed is refused`() async throws {
        let shown = P256.Signing.PrivateKey(), other = P256.Signing.PrivateKey()
        let key = try DPoPKey(.p256(shown.publicKey.rawRepresentation), algorithm: "ES256") { bytes in
            try other.signature(for: bytes).rawRepresentation
        }
        let error = await #expect(throws: OAuthError.self) { try await client(key).token(for: password()) }
        #expect(error?.error == "invalid_dpop_proof", "\(error as Any)")
    }

    @Test func `an assertion of an RSA key`() async throws {
        let directory = try #require(server["TOKEN_SERVER_DIR"])
        let pem = try String(contentsOfFile: directory + "/signer.pem", encoding: .utf8)
        func token(_ key: _RSA.Signing.PrivateKey) async throws -> AccessToken {
            // This server expects its endpoint as the audience.
            let client = try OAuthClient(
                id: "signer", authentication: .privateKeyJWT(signedBy: key), tokenURL: url, issuer: url.absoluteString)
            return try await ClientCredentialsLoader(client, scope: server["TOKEN_SERVER_SCOPE"]).loadToken(replacing: nil)
        }
        #expect(try await !token(_RSA.Signing.PrivateKey(pemRepresentation: pem)).value.isEmpty)
        let error = await #expect(throws: OAuthError.self) { try await token(_RSA.Signing.PrivateKey(keySize: .bits2048)) }
        #expect(error?.code == .refused && error?.remedy == .clientRegistration, "\(error as Any)")
    }
}
