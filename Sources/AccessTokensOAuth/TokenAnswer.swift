public import AccessTokens
import TokenServiceConcurrency
import AccessTokensHTTP

/// An authorization server's answer to a grant: the token, and all other members by name.
///
/// No description, dump or mirror shows a token or a member.
public struct TokenAnswer: Sendable {
    /// The token.
    public let token: AccessToken

    /// All members of the answer, including the token's.
    public let members: AnswerMembers
}

extension TokenAnswer: Redacted {
    /// The token's own description.
    package var text: String { "TokenAnswer(\(token))" }
}

/// A number of seconds, for which some servers send a string.
extension JSONScanner.Value {
    /// The time; `nil` if it is negative or not a number.
    var seconds: Duration? {
        let seconds: Double? =
            switch self {
            case .number(let number): number
            // The initializer alone would accept "nan", "inf" and hexadecimal numbers as well.
            case .string(let text) where text.utf8.allSatisfy("0123456789.eE+-".utf8.contains): Double(text)
            default: nil
            }
        return seconds.flatMap(Duration.seconds(read:))
    }
}
