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
public struct TokenResponse: Sendable {
    /// The token.
    public let token: AccessToken

    /// All members of the answer, including the token's.
    public let members: ResponseMembers
}

extension TokenResponse: Redacted {
    /// The token's own description.
    package var text: String { "TokenResponse(\(token))" }
}

/// What a server's answer to a grant means, as a program reads it that knows the server.
///
/// ```swift
/// let client = try OAuthClient(
///     id: "app", tokenURL: url,
///     reading: { members, _ in
///         guard let data = try? members.decoded(as: Wrapped.self).data else { return .asUsual }
///         return .token(AccessToken(data.token, lifetime: .seconds(data.seconds), refreshToken: data.refreshToken))
///     })
/// ```
///
/// What follows is the same as for any other answer: the checks of a token, the search for a refresh token that must not be lost,
/// and the redaction of texts.
public struct ResponseReading: Sendable {
    enum Meaning: Sendable {
        case asUsual
        case token(AccessToken)
        case refused(code: String?, explanation: String?)
    }

    let meaning: Meaning

    /// The answer is one of RFC 6749, or close to it.
    public static let asUsual = ResponseReading(meaning: .asUsual)

    /// The answer is this token.
    ///
    /// What the token doesn't say is added: the lifetime when none is given, and after a refresh the refresh token and the scope.
    public static func token(_ token: AccessToken) -> ResponseReading { ResponseReading(meaning: .token(token)) }

    /// The answer is a refusal.
    ///
    /// - Parameters:
    ///   - code: An error code of RFC 6749 §5.2, such as `invalid_grant`, by which a service knows what to do; or any other.
    ///   - explanation: The server's explanation.
    public static func refused(_ code: String? = nil, explanation: String? = nil) -> ResponseReading {
        ResponseReading(meaning: .refused(code: code, explanation: explanation))
    }
}

extension ResponseReading: Redacted {
    /// What kind of answer it is; no token and no words.
    package var text: String {
        switch meaning {
        case .asUsual: "ResponseReading(as usual)"
        case .token(let token): "ResponseReading(\(token))"
        case .refused: "ResponseReading(refused)"
        }
    }
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

    /// What a token keeps of it: a text that isn't empty, or a number; `nil` if it is neither.
    var kept: String? {
        if case .number(let number) = self { return Int(exactly: number).map(String.init) ?? "\(number)" }
        return text.flatMap { $0.isEmpty ? nil : $0 }
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
