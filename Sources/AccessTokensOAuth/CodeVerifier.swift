import TokenServiceConcurrency
import AccessTokensHTTP

/// A random secret that binds a sign-in's code to the program that began the sign-in (PKCE).
///
/// The sign-in carries its ``challenge``; the token request carries the verifier itself. No description or dump shows it.
///
/// Source: RFC 7636.
package struct CodeVerifier: Sendable, Hashable {
    /// The secret, for the request that presents the code.
    package let value: String

    /// Creates a verifier of 256 random bits (RFC 7636 §7.1).
    package init() {
        value = Base64URL.random(bytes: 32)
    }

    /// Creates a verifier of a known text.
    package init(_ value: String) {
        self.value = value
    }

    /// The code challenge for the method `S256`: the verifier's SHA-256 in Base64 for URLs (RFC 7636 §4.2).
    package var challenge: String { Base64URL.encode(SHA256.hash(Array(value.utf8))) }
}

extension CodeVerifier: Redacted {
    /// The type's name alone.
    package var text: String { "CodeVerifier" }
}
