import TokenServiceConcurrency
import AccessTokensHTTP

/// A random secret that binds a sign-in's code to the program that began the sign-in (PKCE).
///
/// The sign-in carries its ``challenge``; the token request carries the verifier itself. No description or dump shows it.
///
/// Source: RFC 7636.
public struct CodeVerifier: Sendable, Hashable {
    /// The secret, for the request that presents the code.
    public let value: String

    /// Creates a verifier of 256 random bits (RFC 7636 §7.1).
    public init() {
        value = Base64URL.random(bytes: 32)
    }

    /// Creates a verifier from another program's text.
    ///
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration` if it doesn't have 43 to 128 letters, digits and `-._~`.
    public init(_ value: String) throws(OAuthError) {
        guard value.utf8.allSatisfy({ $0.isAlphanumeric || "-._~".utf8.contains($0) }), 43...128 ~= value.utf8.count else {
            throw OAuthError(.invalidConfiguration("a code verifier must have 43 to 128 characters: letters, digits and -._~"))
        }
        self.value = value
    }

    /// The code challenge for the method `S256`: the verifier's SHA-256 in Base64 for URLs (RFC 7636 §4.2).
    public var challenge: String { Base64URL.encode(SHA256.hash(Array(value.utf8))) }
}

extension CodeVerifier: Redacted {
    /// The type's name alone.
    package var text: String { "CodeVerifier" }
}
