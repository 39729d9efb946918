/// One challenge of a `WWW-Authenticate` header: how a server wants a request to be authenticated, and why it was not.
///
/// ```swift
/// let challenges = AuthenticationChallenge.challenges(in: header)
/// if challenges.first(where: { $0.hasScheme("Bearer") })?["error"] == "invalid_token" { await tokens.invalidate(token) }
/// ```
///
/// Source: RFC 9110 §11.6.1; RFC 6750 §3 for what Bearer challenges say.
public struct AuthenticationChallenge: Sendable, Hashable {
    /// The scheme's name as the server wrote it; ``hasScheme(_:)`` compares it.
    public let scheme: String

    /// The one value that some schemes have instead of parameters, such as the data of `Negotiate`.
    public let token68: String?

    /// The parameters by their name in lower case, as the server wrote their values, which may hold anything.
    public let parameters: [String: String]

    /// Creates a challenge from its parts.
    ///
    /// - Parameters:
    ///   - scheme: The scheme's name.
    ///   - token68: The one value that some schemes have instead of parameters.
    ///   - parameters: The parameters by name; of names that differ in nothing but case, one is kept.
    public init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = Dictionary(
            parameters.sorted { $0.key < $1.key }.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }
        )
    }

    /// The value of a parameter, whose name is compared without case; `nil` if there is none (RFC 9110 §11.2).
    public subscript(parameter: String) -> String? { parameters[parameter.lowercased()] }

    /// Returns whether the challenge is of that scheme, compared without case (RFC 9110 §11.1).
    public func hasScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// Returns the challenges of a header's value, in their order.
    ///
    /// One header may hold several challenges; several headers may be given joined by commas, which is how most HTTP clients
    /// hand them over. It never fails: a part that follows no rule is skipped to the next comma, a missing comma between
    /// two parameters is forgiven, of a repeated parameter the first counts, and a quoted value without an end is dropped.
    ///
    /// - Parameter header: The header's value, or the values of several joined by commas.
    public static func challenges(in header: String) -> [AuthenticationChallenge] {
        var parser = ChallengeParser(header)
        return parser.challenges()
    }
}

extension AuthenticationChallenge: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The scheme and, if there is one, the error, made safe to print; no other value, for some schemes carry secrets.
    public var description: String {
        let error = self["error"].map { ", error \($0)" } ?? ""
        return "AuthenticationChallenge(\(ServerText.safe(scheme + error, hiding: [])))"
    }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
