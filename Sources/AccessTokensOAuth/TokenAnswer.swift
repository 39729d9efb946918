public import AccessTokens
import TokenServiceConcurrency
import AccessTokensHTTP

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
    package var text: String { "TokenAnswer(\(token))" }
}

/// A number of seconds, for which some servers send a string.
extension JSONScanner.Value {
    /// The time, if it is one: not a negative number.
    var seconds: Duration? {
        let seconds: Double? =
            switch self {
            case .number(let number): number
            // The initializer for any text takes "nan", "inf" and hexadecimal numbers too.
            case .string(let text) where text.utf8.allSatisfy("0123456789.eE+-".utf8.contains): Double(text)
            default: nil
            }
        return seconds.flatMap(Duration.seconds(read:))
    }
}
