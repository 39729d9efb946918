import AccessTokensHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ClientAuthentication {
    /// By an assertion that the client's private key signs for each request (`private_key_jwt`).
    ///
    /// ```swift
    /// let key = ClientAuthentication.privateKeyJWT(algorithm: "ES256", keyID: "2026-11") { try await key.signature(for: $0) }
    /// let client = try OAuthClient(id: "reports", authentication: key, tokenURL: url, issuer: "https://as.example")
    /// ```
    ///
    /// You provide the signature, so the key can stay in a key service or a security chip. Each assertion has its own `jti`
    /// and ends after 60 s. By default its audience is the client's issuer and nothing else: with other audiences, one server
    /// could use a client's assertion at another server.
    ///
    /// - Parameters:
    ///   - algorithm: The signature's algorithm, such as `ES256` or `RS256` (RFC 7518 §3.1).
    ///   - keyID: Which of the client's registered keys signs (RFC 7515 §4.1.4).
    ///   - audience: `nil`: the client's `issuer`, which it then needs. Otherwise what the server demands, such as its endpoint's
    ///     URL.
    ///   - wallClock: The time that the assertion is valid from.
    ///   - sign: Returns the signature of the bytes in the form that the algorithm has in RFC 7518 §3: for `ES256` the 64 bytes
    ///     of R and S, not DER. It is called at each request, maybe concurrently.
    ///
    /// Source: RFC 7523 §2.2, §3; RFC 9700 §2.5; OpenID Connect Core §9.
    public static func privateKeyJWT(
        algorithm: String, keyID: String? = nil, audience: String? = nil, wallClock: @escaping @Sendable () -> Date = { Date() },
        sign: @escaping @Sendable @concurrent (Data) async throws -> Data
    ) -> ClientAuthentication {
        let assertion = JWTAssertion(algorithm: algorithm, keyID: keyID, wallClock: wallClock, sign: sign)
        let problem = audience == "" ? "the assertion's audience is empty" : nil
        return ClientAuthentication.privateKey(needsIssuer: audience == nil, problem: problem, clock: wallClock) {
            clientID, issuer in
            try await assertion.make(clientID: clientID, audience: audience ?? issuer)
        }
    }
}

/// Makes the assertions of one key.
package struct JWTAssertion: Sendable {
    private let header: [String: String]
    private let lifetime = 60
    private let wallClock: @Sendable () -> Date
    private let sign: @Sendable @concurrent (Data) async throws -> Data

    package init(
        algorithm: String, keyID: String? = nil, wallClock: @escaping @Sendable () -> Date = { Date() },
        sign: @escaping @Sendable @concurrent (Data) async throws -> Data
    ) {
        var header = ["alg": algorithm, "typ": "JWT"]
        header["kid"] = keyID
        self.header = header
        self.wallClock = wallClock
        self.sign = sign
    }

    /// Returns a new assertion, whose issuer and subject are the client.
    @concurrent package func make(clientID: String, audience: String) async throws -> String {
        struct Claims: Encodable {
            let iss, sub, aud, jti: String
            let iat, exp: Int
        }
        let time = wallClock().timeIntervalSince1970
        guard abs(time) < 1e15 else { throw OAuthError(.credentialsUnavailable("the wall clock's time is out of range")) }
        let now = Int(time)
        let claims = Claims(
            iss: clientID, sub: clientID, aud: audience, jti: Base64URL.random(bytes: 16), iat: now, exp: now + lifetime)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try await SignedJWT.make(header: encoder.encode(header), claims: encoder.encode(claims), sign: sign)
    }
}
