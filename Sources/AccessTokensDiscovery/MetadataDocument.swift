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
    /// Throws unless an identifier is a URL that can have metadata: `https`, or `http` to a loopback address, without a query.
    static func place(_ what: String, _ identifier: String) throws(OAuthError) -> URL {
        guard let url = URL(string: identifier), let origin = Origin(url), origin.isPrivate, url.query == nil,
            url.fragment == nil,
            identifier.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
        else {
            throw OAuthError(
                .invalidConfiguration(
                    "\(what) must be a URL that begins with https, or with http for a loopback address, without user, password, query "
                        + "and fragment"))
        }
        return url
    }

    /// Returns the URL with the well-known name inserted between host and path (RFC 8414 §3, RFC 9728 §3.1).
    static func wellKnown(_ name: String, of url: URL) -> URL? {
        replacingPath(of: url) { "/.well-known/\(name)\($0)" }
    }

    /// Returns the URL with the well-known name behind the path (OpenID Connect Discovery §4.1).
    static func appended(_ name: String, to url: URL) -> URL? {
        replacingPath(of: url) { "\($0)/.well-known/\(name)" }
    }

    /// - Parameter change: Receives the path without a trailing slash.
    private static func replacingPath(of url: URL, _ change: (String) -> String) -> URL? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        let path = parts.percentEncodedPath
        parts.percentEncodedPath = change(path.hasSuffix("/") ? String(path.dropLast()) : path)
        return parts.url
    }

    /// Fetches a document with one request.
    ///
    /// - Returns: Its members, or why there is no document at this location.
    /// - Throws: `OAuthError` if the place gives no definite answer, or redirects.
    static func fetch(
        _ url: URL, by transport: any TokenTransport, timeLimit: Duration
    ) async throws -> (members: AnswerMembers?, answer: String) {
        let place = ServerText.safe(url.absoluteString, hiding: [])
        let request = TransportRequest(
            url: url, method: "GET", headers: ["Accept": "application/json"], timeLimit: timeLimit,
            maximumBodySize: AnswerMembers.maximumSize)
        let response: TransportResponse
        do {
            response = try await transport.answer(to: request, hiding: [])
        } catch TransportError.tooLong {
            throw OAuthError(.invalidMetadata("The metadata at \(place) is longer than \(AnswerMembers.maximumSize) bytes"))
        } catch let error as TransportError {
            var failure = OAuthError(error, of: request)
            failure.asked = OAuthError.Asked(client: "", method: "", place: place)
            throw failure
        }
        func failure(_ problem: String) -> OAuthError {
            var failure = OAuthError(.invalidMetadata("The metadata at \(place) \(problem)"))
            failure.status = response.status
            return failure
        }
        switch response.status {
        case 200:
            let members = AnswerMembers(response.body)
            // Many servers respond to unknown paths with an HTML page.
            return members.problem.map { (nil, "\(place): \($0)") } ?? (members, "")
        case 300..<400: throw failure("is redirected (status \(response.status)), which is not followed")
        case 408, 429, 500...: throw failure("is unavailable (status \(response.status)). Try again later")
        default: return (nil, "\(place): status \(response.status)")
        }
    }
}
