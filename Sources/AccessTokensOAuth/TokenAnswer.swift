public import TokenServiceConcurrency
public import AccessTokens
import TokenServiceHTTP

/// What an authorization server answered to a grant: the token, and everything else by name.
///
/// No description, dump or mirror shows a token or a member.
public struct TokenAnswer: Sendable {
    /// The token.
    public let token: AccessToken

    /// All members of the answer, those of the token among them.
    public let members: AnswerMembers
}

extension TokenAnswer: Redacted {
    /// What the token says of itself.
    public var description: String { "TokenAnswer(\(token))" }
}

/// The members that a token is made of; one that is `null` or empty counts as absent.
///
/// Source: RFC 6749 §5.1, §3.2; `refresh_in` is Microsoft's.
struct TokenBody {
    let accessToken: String
    let tokenType: String
    /// As it came: whether an unreadable one is an error depends on what else would be lost.
    let expiresIn: ServerSeconds?
    let refreshIn: Duration?
    let refreshToken: String?
    let scope: String?

    /// Why there is no token, without quoting the answer.
    struct Problem: Error {
        let text: String
    }

    init(_ members: AnswerMembers) throws(Problem) {
        if let problem = members.problem { throw Problem(text: problem) }
        accessToken = try Self.required("access_token", in: members)
        tokenType = try Self.required("token_type", in: members)
        expiresIn = members.value("expires_in").map(ServerSeconds.init)
        // An extension: what is wrong with it must not cost the token.
        refreshIn = members.value("refresh_in").flatMap { ServerSeconds($0).duration }
        // It goes into forms, which carry any text, and never into a header.
        refreshToken = try Self.text("refresh_token", in: members)
        scope = try Self.text("scope", in: members).map { text throws(Problem) in try Self.printable(text, "scope") }
        _ = try Self.text("error", in: members)
    }

    private static func required(_ name: String, in members: AnswerMembers) throws(Problem) -> String {
        switch members.value(name) {
        case .string(let text):
            guard !text.isEmpty else { throw Problem(text: "\(name) has an invalid value") }
            return try printable(text, name)
        case nil: throw Problem(text: "\(name) is missing")
        default: throw Problem(text: "\(name) has the wrong type")
        }
    }

    private static func text(_ name: String, in members: AnswerMembers) throws(Problem) -> String? {
        switch members.value(name) {
        case .string(let text): text.isEmpty ? nil : text
        case nil: nil
        default: throw Problem(text: "\(name) has the wrong type")
        }
    }

    /// Refuses line breaks, which would end the header that carries an access token (`VSCHAR` in RFC 6749).
    private static func printable(_ text: String, _ name: String) throws(Problem) -> String {
        guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { throw Problem(text: "\(name) has an invalid value") }
        return text
    }
}

/// A number of seconds, for which some servers send a string.
enum ServerSeconds {
    case seconds(Duration)
    case negative
    case unreadable

    init(_ value: JSONScanner.Value) {
        let seconds: Double? =
            switch value {
            case .number(let number): number
            // The initializer for any text takes "nan", "inf" and hexadecimal numbers too.
            case .string(let text) where text.utf8.allSatisfy("0123456789.eE+-".utf8.contains): Double(text)
            default: nil
            }
        if let seconds, seconds.isFinite {
            self = Duration.seconds(read: seconds).map(Self.seconds) ?? .negative
        } else {
            self = .unreadable
        }
    }

    /// The time, if it is one.
    var duration: Duration? {
        if case .seconds(let duration) = self { duration } else { nil }
    }
}
