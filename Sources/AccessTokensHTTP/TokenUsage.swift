import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How an API takes tokens, and which of its answers say that a token is no longer valid.
///
/// ```swift
/// let slack = TokenUsage { $0.members("error").contains("token_expired") }
/// let arcGIS = TokenUsage(in: .query("token")) { $0.members("error", "code").contains("498") }
/// ```
///
/// Without anything else, a token is sent as RFC 6750 says, and an answer with status 401 refuses it, unless its challenge has
/// another reason (``TransportResponse/refusesToken``).
public struct TokenUsage: Sendable {
    /// Where a request carries its token.
    public enum Place: Sendable, Hashable {
        /// A header, whose value is the token, after the scheme and a space if there is a scheme.
        case header(_ name: String, scheme: String? = nil)
        /// A parameter of the URL's query. Logs and caches of others may keep it, so use a header where the API has one.
        case query(_ name: String)
    }

    /// Where the program says that the token goes; `nil`: where the token's type says.
    package let place: Place?

    private let isRefusal: @Sendable (TransportResponse) -> Bool

    /// Creates the usage of one API.
    ///
    /// - Parameters:
    ///   - place: Where a request carries its token, whatever type it has; `nil`: the header `Authorization` with the scheme
    ///     `Bearer`, for tokens of that type.
    ///   - isRefusal: Whether an answer, of any status, means that the request's token is no longer valid. It is called on any
    ///     thread for each answer to a request with a token, except redirects that are followed. Each refusal costs a load, within
    ///     the service's limit, and the request is sent once more: what the API has done before it refused, it does twice.
    public init(
        in place: Place? = nil,
        refusedBy isRefusal: @escaping @Sendable (_ answer: TransportResponse) -> Bool = { $0.refusesToken }
    ) {
        self.place = place
        self.isRefusal = isRefusal
    }

    /// Returns whether an answer means that its request's token is no longer valid.
    ///
    /// - Parameters:
    ///   - answer: The answer.
    ///   - tokenType: The token's type. What the answer says of bound tokens isn't about a bearer token, and the other way round;
    ///     `nil`: not known, and a DPoP challenge with an error decides.
    public func isRefused(by answer: TransportResponse, tokenType: String? = nil) -> Bool {
        var answer = answer
        answer.isForBearer = tokenType.map { $0.lowercased() != "dpop" } ?? answer.isForBearer
        return isRefusal(answer)
    }

    /// Returns the header that carries a token, by its name; none if the URL carries it.
    public func headers(carrying token: String) -> [String: String] {
        switch place {
        case .header(let name, let scheme): [name: scheme.map { "\($0) \(token)" } ?? token]
        case .query: [:]
        case nil: ["Authorization": "Bearer \(token)"]
        }
    }

    /// Returns the URL with the token, if the URL carries it, instead of another parameter of that name; otherwise the same URL.
    ///
    /// Show it in no log, and don't let a cache keep it.
    public func url(_ url: URL, carrying token: String) -> URL {
        guard case .query(let name) = place else { return url }
        return url.query(without: { found, _ in found == name }, adding: "\(name.percentEncoded)=\(token.percentEncoded)")
    }

    /// Returns the URL without the token, which a server may have copied into a redirect's target.
    package func url(_ url: URL, without token: String) -> URL {
        guard case .query(let name) = place else { return url }
        return url.query { $0 == name && $1 == token }
    }

    /// Returns whether a request has its own value where the token would go.
    public func isTaken(in url: URL, headers: [String: String]) -> Bool {
        switch place {
        case .header(let name, _): headers.header(name) != nil
        case .query(let name): url.query(without: { found, _ in found == name }) != url
        case nil: headers.header("Authorization") != nil
        }
    }

    /// Why no request can carry a token so; `nil` if one can.
    package var objection: String? {
        switch place {
        case .header(let name, let scheme):
            HTTPToken.isValid(name) && scheme.map(HTTPToken.isValid) ?? true && !HTTPToken.isOfConnection(name)
                ? nil : "the name or the scheme of the tokens' header is not valid"
        case .query(let name): name.isEmpty ? "the tokens' query parameter has no name" : nil
        case nil: nil
        }
    }
}

extension TokenUsage: Redacted {
    package var text: String { "TokenUsage" }
}

extension TransportResponse {
    /// The challenges of the answer's `WWW-Authenticate`, in their order.
    public var challenges: [AuthenticationChallenge] {
        header("WWW-Authenticate").map(AuthenticationChallenge.challenges) ?? []
    }

    /// Whether it is a 401 about the token: it says `invalid_token` under any scheme, or gives a Bearer or DPoP token no other reason.
    ///
    /// Some servers answer expired tokens with an empty 401, with a bare challenge, or with one of another scheme (`OAuth2`,
    /// `Token`, a gateway's `Basic`). What a DPoP challenge says is about the bound token, and what others say isn't, unless
    /// ``TokenUsage/isRefused(by:tokenType:)`` knows that the request had a bearer token, as `DataLoading` does.
    ///
    /// Source: RFC 6750 §3.1; RFC 9449 §7.1.
    public var refusesToken: Bool {
        guard status == 401 else { return false }
        let reasons = challenges.filter { $0["error"] != nil }
        let hasBearer = reasons.contains { $0.hasScheme("Bearer") }
        if isForBearer, hasBearer { return reasons.contains { $0["error"] == "invalid_token" && !$0.hasScheme("DPoP") } }
        let bound = reasons.filter { $0.hasScheme("DPoP") }
        return (bound.isEmpty ? reasons : bound).contains { $0["error"] == "invalid_token" }
            || bound.isEmpty && !hasBearer
    }

    /// Returns what a JSON body says at a path of members: texts, numbers and truth values, from all elements of arrays.
    ///
    /// `members("errors", "extensions", "code")` finds `UNAUTHENTICATED` in
    /// `{"errors": [{"extensions": {"code": "UNAUTHENTICATED"}}]}`.
    ///
    /// - Returns: None if there is no such member, or if the body isn't JSON or has more than 1 MiB.
    public func members(_ path: String...) -> [String] {
        guard body.count <= 1 << 20 else { return [] }
        return (try? JSONDecoder().decode(Members.self, from: body, configuration: path[...]).texts) ?? []
    }
}

/// The values at the end of a path, which the decoder walks alone, whatever else the body holds.
private struct Members: DecodableWithConfiguration {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    let texts: [String]

    init(from decoder: any Decoder, configuration path: ArraySlice<String>) throws {
        if var list = try? decoder.unkeyedContainer() {
            var texts: [String] = []
            while !list.isAtEnd { texts += try list.decode(Members.self, configuration: path).texts }
            self.texts = texts
        } else if let name = path.first {
            let object = try? decoder.container(keyedBy: Name.self)
            let member = try object?.decodeIfPresent(
                Members.self, forKey: Name(stringValue: name), configuration: path.dropFirst())
            texts = member?.texts ?? []
        } else {
            let value = try decoder.singleValueContainer()
            let text = try? value.decode(String.self)
            let number = (try? value.decode(Int.self)).map(String.init)
            texts = [text ?? number ?? (try? value.decode(Bool.self)).map { "\($0)" }].compactMap(\.self)
        }
    }
}

extension URL {
    /// Returns the URL without some parameters of its query, given by their decoded names and values, and with another at the end.
    fileprivate func query(without isLeftOut: (String, String) -> Bool, adding added: String? = nil) -> URL {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        let spelled = parts.percentEncodedQuery?.split(separator: "&", omittingEmptySubsequences: false) ?? []
        let all = Array(zip(parts.queryItems ?? [], spelled))
        var kept = all.filter { !isLeftOut($0.0.name, $0.0.value ?? "") }.map { String($0.1) }
        guard kept.count < all.count || added != nil else { return self }
        if let added { kept.append(added) }
        parts.percentEncodedQuery = kept.isEmpty ? nil : kept.joined(separator: "&")
        return parts.url ?? self
    }
}

extension String {
    /// The text with everything encoded except RFC 3986's unreserved characters, also the plus, which servers read as a space.
    package var percentEncoded: String {
        var bytes: [UInt8] = []
        for byte in utf8 {
            if byte.isAlphanumeric || "-._~".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += "%\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
