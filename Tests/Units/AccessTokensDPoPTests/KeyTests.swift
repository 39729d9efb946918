import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency
import AccessTokensHTTP

@testable import AccessTokensDPoP

struct KeyTests {
    @Test(arguments: [
        ("https://As.Example/token?a=b#c", "https://as.example/token"), ("https://as.example", "https://as.example/"),
        ("https://as.example:443/a%20b/", "https://as.example/a%20b/"),
        ("HTTPS://as.example:8443/x?", "https://as.example:8443/x"),
        ("https://as.example/a/../b/./c/..?x=/../y", "https://as.example/b/"),
        ("https://as.example/../..", "https://as.example/"),
        ("https://as.example//a//../b/...", "https://as.example//a/b/..."),
        ("https://as.example/%7e%2e%2E/%2f", "https://as.example/%7E%2E%2E/%2F"),
        ("https://as.example/a/%2e%2E/b/.%2e/%2e/c?%7e", "https://as.example/c"),
        ("https://as.example/a/%2e.", "https://as.example/"), ("https://as.example/a/%2e", "https://as.example/a/"),
        ("https://as.example/%c3%a9%252e%252e/ab", "https://as.example/%C3%A9%252e%252e/ab"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"), ("http://localhost:80/", "http://localhost/"),
    ])
    func `a proof's URL has no query, fragment, default port or capitals in the host`(url: String, target: String) async throws {
        let proof = try await DPoPKey.test().proof(method: "GET", url: #require(URL(string: url)), accessToken: nil, nonce: "n")
        let sent = try #require(SentProof(proof.headers["DPoP"]))
        #expect(sent["htu"] == target && sent["htm"] == "GET" && sent["nonce"] == "n" && sent["ath"] == nil)
        #expect(sent.header["typ"] as? String == "dpop+jwt")
    }

    @Test(arguments: ["ftp://as.example/", "https://user:word@as.example/", "file:///x"])
    func `no proof is made for a URL to which no token may go`(url: String) async throws {
        let error = await #expect(throws: DPoPError.self) {
            try await DPoPKey.test().proof(method: "GET", url: #require(URL(string: url)), accessToken: nil, nonce: nil)
        }
        #expect(error?.code == .invalidRequest && error?.mayBeUnderWay == false)
    }

    // Invalid keys: a private part, another type, a truncated point, no JSON.
    @Test(arguments: [
        (#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, "32 bytes each"),
        (VectorTests.key.dropLast() + #","d":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEy"}"#, "it contains the private key"),
        (#"{"kty":"oct","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEy"}"#, "it contains the private key"),
        (#"{"kty":"EC","crv":"secp256k1"}"#, "its type must be"), ("[]", "it is not the JSON of a key"),
        ("", "it is not the JSON"),
        (#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, "2,048"), (#"{"kty":"OKP","crv":"Ed25519","x":"@@"}"#, "32 bytes"),
        (String(repeating: " ", count: 100_000), "it is not the JSON"),
    ])
    func `a text that isn't a usable public key is refused and not quoted`(text: String, problem: String) {
        let error = #expect(throws: DPoPError.self) { try PublicJWK(json: Data(text.utf8)) }
        #expect(error?.code == .invalidKey && error?.description.contains(problem) == true, "\(error.map { "\($0)" } ?? "")")
        #expect(!texts(error as Any).contains("c2VjcmV0"))
    }

    @Test(arguments: ["none", "HS256", "RS256", "ES384", ""])
    func `an algorithm that doesn't fit the key is refused`(algorithm: String) {
        let error = #expect(throws: DPoPError.self) {
            try DPoPKey(.p256(Data(repeating: 1, count: 64)), algorithm: algorithm) { $0 }
        }
        #expect(
            error?.description == "The key can't be used for proofs: its algorithm must be one of ES256.")
    }

    @Test func `a point may begin with the byte that marks it as uncompressed`() throws {
        let point = Data((0..<64).map { UInt8($0) })
        #expect(try PublicJWK.p256(point) == .p256([4] + point))
        #expect(throws: DPoPError.self) { try PublicJWK.p256(point + [1]) }
        // A slice's indices don't begin at zero.
        #expect(try PublicJWK.p256(([9] + point).dropFirst()) == .p256(point))
    }

    @Test(arguments: [0, 70, 72]) func `a signature in DER is refused before it is sent`(size: Int) async throws {
        let key = try DPoPKey.test(sign: { _ in Data(count: size) })
        let error = await #expect(throws: DPoPError.self) {
            try await key.proof(method: "GET", url: #require(URL(string: "https://a.example")), accessToken: nil, nonce: nil)
        }
        #expect(error?.code == .invalidSignature && error?.description.contains("\(size) bytes") == true)
    }

    @Test func `a signing closure has ten seconds, even if it ignores its cancellation`() async throws {
        let clock = ManualClock()
        let (never, _) = AsyncStream.makeStream(of: Void.self)
        let key = try DPoPKey.test(
            clock: clock,
            sign: { _ in
                // Not a child of the calling task, and it ignores cancellation.
                await Task.detached { for await _ in never {} }.value
                return Data()
            })
        let url = try #require(URL(string: "https://a.example"))
        let proof = Task { try await key.proof(method: "GET", url: url, accessToken: nil, nonce: nil) }
        try await clock.waitForSleepers(1)
        clock.advance(by: .seconds(10))
        let error = await #expect(throws: DPoPError.self) { _ = try await proof.value }
        #expect(error?.code == .signingTimedOut && error?.remedy == .retry)
        #expect(
            error?.description == "Signing took longer than 10.0 seconds, so nothing was sent. Check the key service that signs.")
    }

    @Test func `a cancelled caller doesn't wait for the signing closure`() async throws {
        let (never, _) = AsyncStream.makeStream(of: Void.self)
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let key = try DPoPKey.test(sign: { _ in
            begin.yield()
            await Task.detached { for await _ in never {} }.value
            return Data()
        })
        let url = try #require(URL(string: "https://a.example"))
        let task = Task { try await key.proof(method: "GET", url: url, accessToken: nil, nonce: nil) }
        for await _ in began { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
    }

    @Test func `no text of a key, a proof or an error shows a proof, a nonce or the key`() async throws {
        let key = try DPoPKey.test()
        let url = try #require(URL(string: "https://a.example"))
        _ = try key.nonce(in: ["dpop-nonce": "the-nonce"], from: url)
        let proof = try await key.proof(method: "GET", url: url, accessToken: "the-token", nonce: nil)
        let sent = try #require(SentProof(proof.headers["DPoP"]))
        #expect(sent["nonce"] == "the-nonce")
        let shown = texts(key) + texts(proof) + texts(key.publicKey)
        for secret in ["the-nonce", "the-token", "proof-1", sent.text, key.keyThumbprint, "AQEB", "0101"] {
            #expect(!shown.contains(secret), "\(secret)")
        }
        #expect("\(key)" == "DPoPKey(ES256)" && "\(proof)" == "RequestProof(with a nonce)")
    }
}

/// The nonces as a value, without a server.
struct NonceTests {
    func origin(_ number: Int) throws -> Origin {
        try #require(URL(string: "https://server\(number).example").flatMap(Origin.init))
    }

    @Test func `a nonce is used for the origin it came from, and the latest one counts`() throws {
        var nonces = DPoPNonces()
        try nonces.remember("a", for: origin(1))
        try nonces.remember("b", for: origin(2))
        try nonces.remember("c", for: origin(1))
        #expect(
            try nonces.nonce(for: origin(1)) == "c" && nonces.nonce(for: origin(2)) == "b" && nonces.nonce(for: origin(3)) == nil)
        let other = try #require(URL(string: "https://server1.example:444").flatMap(Origin.init))
        #expect(nonces.nonce(for: other) == nil)
    }

    @Test func `when too many origins are remembered, the least recently used one is forgotten`() throws {
        var nonces = DPoPNonces()
        for number in 1...DPoPNonces.mostOrigins { try nonces.remember("n", for: origin(number)) }
        _ = try nonces.nonce(for: origin(1))
        try nonces.remember("n", for: origin(0))
        #expect(nonces.count == DPoPNonces.mostOrigins)
        #expect(try nonces.nonce(for: origin(1)) == "n" && nonces.nonce(for: origin(2)) == nil)
    }

    // RFC 9449 §8.1: 1*NQCHAR.
    @Test(arguments: [
        "", " a", "a b", "a, b", "a\"b", #"a\b"#, "ä", "a\u{7F}", String(repeating: "n", count: 1025),
        String(repeating: "n", count: 8192),
    ])
    func `an invalid nonce is refused, the last one is kept, and no text quotes the invalid one`(nonce: String) throws {
        var nonces = DPoPNonces()
        try nonces.remember("good", for: origin(1))
        let error = #expect(throws: DPoPError.self) { try nonces.remember(nonce, for: origin(1)) }
        #expect(error?.code == .invalidNonce && error?.remedy == .retry)
        #expect(nonce.isEmpty || nonce.count < 3 || !texts(error as Any).contains(nonce.prefix(20)))
        #expect(try nonces.nonce(for: origin(1)) == "good")
    }

    @Test(arguments: ["!", "#[]~", "a,b", String(repeating: "n", count: 1024)])
    func `every character of a nonce is kept`(nonce: String) throws {
        var nonces = DPoPNonces()
        try nonces.remember(nonce, for: origin(1))
        #expect(try nonces.nonce(for: origin(1)) == nonce)
    }

    // For a program with its own HTTP client, which may pass on whatever its server sends.
    @Test(arguments: [#"a","htm":"GET"#, "a b", "", "a\r\nb", "ü", String(repeating: "n", count: 8192)])
    func `no proof is made for an invalid nonce`(nonce: String) async throws {
        let error = await #expect(throws: DPoPError.self) {
            try await DPoPKey.test().proof(method: "POST", url: url("https://as.example"), accessToken: nil, nonce: nonce)
        }
        #expect(error?.code == .invalidNonce)
    }
}
