import TokenServiceConcurrency
import AccessTokensHTTP

/// One challenge of a `WWW-Authenticate` header: how to authenticate a request, and why the server refused it.
///
/// ```swift
/// let challenges = AuthenticationChallenge.challenges(in: header)
/// if challenges.first(where: { $0.hasScheme("Bearer") })?["error"] == "invalid_token" { await tokens.invalidate(token) }
/// ```
///
/// Source: RFC 9110 §11.6.1; RFC 6750 §3 for Bearer challenges.
public struct AuthenticationChallenge: Sendable, Hashable {
    private let challenge: Challenge

    /// The scheme's name as the server wrote it.
    package var scheme: String { challenge.scheme }

    /// The one value that some schemes have instead of parameters, such as the data of `Negotiate`.
    package var token68: String? { challenge.token68 }

    /// The parameters by their names in lower case; a value may hold anything that the server wrote.
    package var parameters: [String: String] { challenge.parameters }

    /// Creates a challenge from its parts.
    ///
    /// - Parameters:
    ///   - scheme: The scheme's name.
    ///   - token68: The one value that some schemes have instead of parameters.
    ///   - parameters: The parameters by name; of names that differ only in case, one is kept.
    package init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        let named = parameters.sorted { $0.key < $1.key }.map { ($0.key.lowercased(), $0.value) }
        challenge = Challenge(
            scheme: scheme, token68: token68, parameters: Dictionary(named, uniquingKeysWith: { first, _ in first }))
    }

    private init(_ challenge: Challenge) {
        self.challenge = challenge
    }

    /// The value of a parameter, whose name is compared without case; `nil` if there is none (RFC 9110 §11.2).
    public subscript(parameter: String) -> String? { challenge[parameter] }

    /// Returns whether the challenge is of that scheme, compared without case (RFC 9110 §11.1).
    public func hasScheme(_ name: String) -> Bool { challenge.hasScheme(name) }

    /// Returns the challenges of a header's value, in their order.
    ///
    /// One header may hold several challenges. Several headers may be given joined by commas, as most HTTP clients return
    /// them. It never fails: a part that breaks the syntax is skipped to the next comma, a missing comma between two
    /// parameters is forgiven, the first of repeated parameters counts, and a quoted value without an end is dropped.
    ///
    /// - Parameter header: The header's value, or the values of several joined by commas.
    public static func challenges(in header: String) -> [AuthenticationChallenge] {
        Challenge.challenges(in: header).map(AuthenticationChallenge.init)
    }
}

extension AuthenticationChallenge: Redacted {
    /// The scheme and, if there is one, the error, made safe to print; no other value, since some schemes carry secrets.
    package var text: String {
        let error = self["error"].map { ", error \($0)" } ?? ""
        return "AuthenticationChallenge(\(ServerText.safe(scheme + error, hiding: [])))"
    }
}
