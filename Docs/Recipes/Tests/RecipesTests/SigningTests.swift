import AccessTokensOAuth
import Crypto
import CryptoExtras
import Foundation
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

    @Test func `an elliptic curve key signs as ES256, and its public key agrees`() async throws {
        let key = P256.Signing.PrivateKey()
        let assertion = JWTAssertion(signedBy: key, keyID: "2026-11")
        let parts = try Parts(try await assertion.make(clientID: "reports", audience: "https://login.example"))
        #expect(parts.header == ["alg": "ES256", "kid": "2026-11", "typ": "JWT"])
        #expect(parts.claims["aud"] as? String == "https://login.example" && parts.claims["sub"] as? String == "reports")
        #expect(parts.signature.count == 64)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed))
        #expect(!P256.Signing.PrivateKey().publicKey.isValidSignature(signature, for: parts.signed))
    }

    @Test func `an RSA key signs as RS256, and its public key agrees`() async throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let assertion = JWTAssertion(signedBy: key)
        let parts = try Parts(try await assertion.make(clientID: "reports", audience: "https://login.example"))
        #expect(parts.header == ["alg": "RS256", "typ": "JWT"])
        let signature = _RSA.Signing.RSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed, padding: .insecurePKCS1v1_5))
    }

    @Test func `openssl agrees with the signature of an RSA key`() async throws {
        let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let parts = try Parts(
            try await JWTAssertion(signedBy: key).make(clientID: "reports", audience: "https://login.example"))
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
