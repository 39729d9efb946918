import Foundation
import AccessTokensHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One HTTP request to send: the caller's own, or the one that a redirect asks for.
struct Message: Sendable {
    var url: URL
    var origin: Origin
    var method: String
    var headers: [String: String]
    var body: Request.Body?
    /// Whether a redirect led away from the first origin; from then on the message carries no secret of that origin.
    var hasLeftOrigin = false

    /// Whether it must not be sent on a reused connection.
    ///
    /// On Linux, if the server closes such a connection after reading a request, whatever its method, libcurl sends the request
    /// again, up to five times. If the request has a body, libcurl hangs until the time limit. On Apple platforms this only
    /// happens to reads and other idempotent requests (RFC 9110 §9.2.2).
    var needsOwnConnection: Bool {
        #if canImport(FoundationNetworking)
        !["GET", "HEAD"].contains(method)
        #else
        false
        #endif
    }

    /// Checks a request and turns it into a message, before anything is sent.
    init(_ request: Request) throws(DataLoadingError) {
        func require(_ condition: Bool, _ problem: String) throws(DataLoadingError) {
            guard condition else { throw DataLoadingError(.invalidRequest, detail: problem) }
        }
        guard let url = Self.url(of: request)?.normalized, let origin = Origin(url) else {
            throw DataLoadingError(
                .invalidRequest, detail: "the URL must be http or https, with a host and without user and password")
        }
        try require(HTTPToken.isValid(request.method), "the HTTP method is not a valid token")
        let capitals = request.method.uppercased()
        // Foundation would send `post` as `POST`, for which other rules of redirects, connections and proofs apply.
        try require(
            request.method == capitals || !Self.standardMethods.contains(capitals), "the HTTP method must be written \(capitals)")
        try require(request.body == nil || !["GET", "HEAD"].contains(request.method), "a GET or HEAD request can't have a body")
        // Only one of them would be sent, at random.
        try require(
            Set(request.headers.keys.map { $0.lowercased() }).count == request.headers.count,
            "the names of two headers differ only in case")
        for (name, value) in request.headers {
            try require(HTTPToken.isValid(name), "the name of a header is not a valid token")
            try require(HTTPToken.isHeaderValue(value), "the header '\(name)' contains control characters")
            try require(
                !HTTPToken.isOfConnection(name),
                "the header '\(name)' is the connection's own, and follows from the URL and the body: leave it out")
        }
        self.url = url
        self.origin = origin
        method = request.method
        headers = request.headers
        body = request.body
    }

    /// Source: RFC 9110 §9.3, RFC 5789.
    private static let standardMethods = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]

    private static func url(of request: Request) -> URL? {
        guard !request.query.isEmpty else { return request.url }
        var components = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
        let added = request.query.map { item in
            item.name.percentEncoded + (item.value.map { "=" + $0.percentEncoded } ?? "")
        }
        let given = components?.percentEncodedQuery.map { $0.isEmpty ? [] : [$0] } ?? []
        components?.percentEncodedQuery = (given + added).joined(separator: "&")
        return components?.url
    }

    /// Returns the message as the session sends it, with the token and its proof if there are any.
    ///
    /// - Parameter sessionHeaders: Headers that it gets unless it has them or has left its origin.
    func urlRequest(
        with carried: CarriedToken?, adding sessionHeaders: [String: String] = [:]
    ) throws(DataLoadingError) -> URLRequest {
        var request = URLRequest(url: carried?.url(for: url) ?? url)
        // Then the session's delegate doesn't let the cache keep the answer, whose URL has the token.
        if request.url != url { request.cachePolicy = .reloadIgnoringLocalCacheData }
        request.httpMethod = method
        // All at once: on Linux, `setValue` takes 400 instructions for each character.
        let added = carried?.headers ?? [:], own = hasLeftOrigin ? [:] : sessionHeaders.filter { headers.header($0.key) == nil }
        request.allHTTPHeaderFields = headers.merging(own) { $1 }.filter { added.header($0.key) == nil }.merging(added) { $1 }
        switch body?.source {
        case nil: break
        case .data(let data): request.httpBody = data
        case .stream(let opening):
            guard let stream = opening() else {
                throw DataLoadingError(.invalidRequest, detail: "the body's stream can't be opened, or can't be opened again")
            }
            request.httpBodyStream = stream
        }
        return request
    }
}
