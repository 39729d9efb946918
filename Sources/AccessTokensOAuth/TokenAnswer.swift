public import AccessTokens
import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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

/// A time, for which servers send a number or a string.
extension JSONScanner.Value {
    /// A number, finite or not; `nil` if it is none.
    var number: Double? {
        switch self {
        case .number(let number): number
        // The initializer alone would accept "nan", "inf" and hexadecimal numbers as well.
        case .string(let text) where text.utf8.allSatisfy("0123456789.eE+-".utf8.contains): Double(text)
        default: nil
        }
    }

    /// A number of seconds; `nil` if it is negative or not a number.
    var seconds: Duration? { number.flatMap(Duration.seconds(read:)) }

    /// A moment: seconds since 1970, or a date with its time zone (ISO 8601); `nil` if it is neither.
    ///
    /// A number with which seconds would lie beyond the year 5000 is one of milliseconds.
    var date: Date? {
        if let number { return Date(timeIntervalSince1970: number < 1e11 ? number : number / 1000) }
        // A fraction of a second doesn't matter, and isn't read.
        guard let text, text.utf8.count <= 40 else { return nil }
        let whole = text.prefix { $0 != "." }
        return try? Date(whole + text.dropFirst(whole.count + 1).drop(while: \.isNumber), strategy: .iso8601)
    }
}
