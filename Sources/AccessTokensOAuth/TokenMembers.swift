/// The members of a token endpoint's answer that we read; all others are ignored.
///
/// Source: RFC 6749 §5.1 and §5.2; `refresh_in` is Microsoft's.
enum TokenMember: String, CodingKey {
    case accessToken = "access_token"
    case tokenType = "token_type"
    case expiresIn = "expires_in"
    case refreshIn = "refresh_in"
    case refreshToken = "refresh_token"
    case scope
    case error
    case errorDescription = "error_description"
}

/// The body of a successful answer; each invalid member is a `DecodingError`, but for ``expiresIn``.
///
/// A member that is `null` or empty counts as absent.
///
/// Source: RFC 6749 §5.1, §3.2.
struct TokenBody: Decodable {
    let accessToken: String
    let tokenType: String
    /// As it came: whether an unreadable one is an error depends on what else would be lost.
    let expiresIn: ServerSeconds?
    let refreshIn: Duration?
    let refreshToken: String?
    let scope: String?

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: TokenMember.self)
        accessToken = try members.required(.accessToken)
        tokenType = try members.required(.tokenType)
        expiresIn = try members.decodeIfPresent(ServerSeconds.self, forKey: .expiresIn)
        // An extension: what is wrong with it must not cost the token.
        refreshIn = try members.decodeIfPresent(ServerSeconds.self, forKey: .refreshIn)?.duration
        // It goes into forms, which carry any text, and never into a header.
        refreshToken = try members.text(.refreshToken)
        scope = try members.optional(.scope)
        _ = try members.optional(.error)
    }
}

/// The body of an error, as far as it can be read (RFC 6749 §5.2).
struct ErrorBody: Decodable {
    let error: String?
    let errorDescription: String?

    /// Tokens beside the error, whose text may repeat them.
    let tokens: [String]

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: TokenMember.self)
        func text(_ member: TokenMember) -> String? {
            guard let text = try? members.decode(String.self, forKey: member), !text.isEmpty else { return nil }
            return text
        }
        error = text(.error)
        errorDescription = text(.errorDescription)
        tokens = [text(.accessToken), text(.refreshToken)].compactMap { $0 }
    }
}

extension KeyedDecodingContainer<TokenMember> {
    /// Returns a member that must be there (RFC 6749 §5.1).
    fileprivate func required(_ member: TokenMember) throws -> String {
        let text = try decode(String.self, forKey: member)
        guard !text.isEmpty else {
            throw DecodingError.dataCorruptedError(forKey: member, in: self, debugDescription: "empty")
        }
        return try printable(text, member)
    }

    /// Returns a member that must be printable if it is there.
    fileprivate func optional(_ member: TokenMember) throws -> String? {
        try text(member).map { try printable($0, member) }
    }

    /// Returns a member that may hold any text.
    fileprivate func text(_ member: TokenMember) throws -> String? {
        try decodeIfPresent(String.self, forKey: member).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Refuses line breaks, which would end the header that carries an access token (`VSCHAR` in RFC 6749).
    private func printable(_ text: String, _ member: TokenMember) throws -> String {
        guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
            throw DecodingError.dataCorruptedError(forKey: member, in: self, debugDescription: "unprintable")
        }
        return text
    }
}
