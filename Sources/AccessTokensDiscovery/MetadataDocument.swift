import AccessTokensHTTP
import AccessTokensOAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A document in which a server describes itself, and how to fetch and read it.
///
/// Source: RFC 8414; RFC 9728; OpenID Connect Discovery §4.
enum MetadataDocument {
    /// Throws unless an identifier is a URL that can have metadata: `https`, or `http` to a loopback address.
    ///
    /// - Parameter hasQuery: Whether it may have a query: a resource may (RFC 9728 §1.2), an issuer may not (RFC 8414 §2).
    static func place(_ what: String, _ identifier: String, hasQuery: Bool = false) throws(OAuthError) -> URL {
        guard let url = URL(string: identifier), let origin = Origin(url), origin.isPrivate, hasQuery || url.query == nil,
            url.fragment == nil, HTTPToken.isVisible(identifier)
        else {
            throw OAuthError(
                .invalidConfiguration(
                    "\(what) must be a URL that begins with https, or with http for a loopback address, without user, password"
                        + "\(hasQuery ? "" : ", query") and fragment"))
        }
        return url
    }

    /// Whether an identifier is the one that was asked for: the same text, or the same but for the slash of an empty path.
    ///
    /// `https://as.example` and `https://as.example/` are one URL (RFC 3986 §6.2.3), and servers name either.
    static func isSame(_ named: String, as asked: String) -> Bool {
        func withoutSlash(_ identifier: String) -> Substring {
            let isRoot =
                identifier.hasSuffix("/") && identifier.utf8.count { $0 == UInt8(ascii: "/") } == 3 && !identifier.contains("?")
            return isRoot ? identifier.dropLast() : identifier[...]
        }
        return withoutSlash(named).utf8.elementsEqual(withoutSlash(asked).utf8)
    }

    /// Returns the URL with the well-known name inserted between host and path (RFC 8414 §3.1, RFC 9728 §3.1).
    ///
    /// - Parameter keepsSlash: Whether the path keeps a slash at its end.
    static func wellKnown(_ name: String, of url: URL, keepsSlash: Bool = false) -> URL? {
        replacingPath(of: url, keepsSlash: keepsSlash) { "/.well-known/\(name)\($0)" }
    }

    /// Returns the URL with the well-known name behind the path (OpenID Connect Discovery §4.1).
    static func appended(_ name: String, to url: URL) -> URL? {
        replacingPath(of: url) { "\($0)/.well-known/\(name)" }
    }

    private static func replacingPath(of url: URL, keepsSlash: Bool = false, _ change: (String) -> String) -> URL? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        let path = parts.percentEncodedPath
        parts.percentEncodedPath = change(path.hasSuffix("/") && !(keepsSlash && path != "/") ? String(path.dropLast()) : path)
        return parts.url
    }

    /// Fetches the first document that is at one of the places, which are asked in their order.
    ///
    /// Something else may answer in the name of a place: a page, a redirect, JSON without the member, another's document, a gateway
    /// without such a route (5xx). So the next place is asked, and only if there is none does a 5xx mean that the server is in
    /// trouble.
    ///
    /// - Parameters:
    ///   - member: The member that the document must have, which names what it is about.
    ///   - isSame: Whether the name in it is the one that was asked for: otherwise one server could impersonate another (RFC 8414
    ///     §3.3, RFC 9728 §3.3).
    /// - Throws: `OAuthError`, with the status 404 if each place answers that, so that there certainly is none.
    static func first(
        _ member: String, at places: [URL], by transport: any TokenTransport, timeLimit: Duration,
        where isSame: (String) -> Bool
    ) async throws -> (members: ResponseMembers, name: String, place: String) {
        var answers: [String] = [], trouble: OAuthError?, isMissing = true
        for url in places {
            let place = ServerText.safe(url.absoluteString, hiding: [])
            switch try await fetch(url, place, with: member, by: transport, timeLimit: timeLimit) {
            case .found(let members, let name) where isSame(name): return (members, name, place)
            case .found(_, let name):
                let other = ServerText.safe(name, hiding: [])
                answers.append("\(place): belongs to another \(member), \(other); it was not used")
                isMissing = false
            case .absent(let answer, let isGone):
                answers.append("\(place): \(answer)")
                isMissing = isMissing && isGone
            case .trouble(let error): trouble = trouble ?? error
            }
        }
        if let trouble { throw trouble }
        var failure = OAuthError(.invalidMetadata("No metadata of this \(member) was found (\(answers.joined(separator: "; ")))"))
        failure.status = isMissing ? 404 : nil
        throw failure
    }

    private enum Answer {
        case found(ResponseMembers, name: String)
        /// Why there is no document, and whether the server itself says so.
        case absent(String, isGone: Bool = false)
        case trouble(OAuthError)
    }

    /// Asks one place.
    ///
    /// - Throws: `OAuthError` if the place gives no answer, asks for a pause, or sends too much.
    private static func fetch(
        _ url: URL, _ place: String, with member: String, by transport: any TokenTransport, timeLimit: Duration
    ) async throws -> Answer {
        let request = TransportRequest(
            url: url, method: "GET", headers: ["Accept": "application/json"], timeLimit: timeLimit,
            maximumBodySize: ResponseMembers.maximumSize)
        let response: TransportResponse
        do {
            response = try await transport.answer(to: request, hiding: [], asking: OAuthError.Asked(url))
        } catch let error as OAuthError where error.code == .unreadableResponse {
            throw OAuthError(.invalidMetadata("The metadata at \(place) is longer than \(ResponseMembers.maximumSize) bytes"))
        }
        switch response.status {
        case 200:
            let members = ResponseMembers(response.body)
            if let problem = members.problem { return .absent(problem) }
            return members[member].map { .found(members, name: $0) } ?? .absent("it names no \(member)")
        case 300..<400: return .absent("status \(response.status), a redirect, which is not followed")
        case 408, 429, 500...:
            var failure = OAuthError(
                .invalidMetadata("The metadata at \(place) is unavailable (status \(response.status)). Try again later"))
            failure.status = response.status
            guard response.status >= 500 else { throw failure }
            return .trouble(failure)
        default: return .absent("status \(response.status)", isGone: response.status == 404)
        }
    }
}
