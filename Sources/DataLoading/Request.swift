import AccessTokensHTTP
public import Foundation
import TokenServiceConcurrency

/// A request to a server: a value that doesn't track its progress.
///
/// ```swift
/// let request = Request(url: moviesURL, query: [URLQueryItem(name: "page", value: "2")])
/// ```
///
/// One request may be performed any number of times, even at once: each time it gets its own ``StatefulRequest``. It needs
/// no token: a ``DataLoader`` attaches the current one.
public struct Request: Sendable {
    /// The resource's address: an `http` or `https` URL with a host, without user and password.
    public var url: URL

    /// The HTTP method, case-sensitive: `GET` and `HEAD` read and have no body; `POST`, `PUT`, `PATCH`, `DELETE` and any other
    /// may change something.
    ///
    /// A standard method that isn't in upper case is an error: some systems would send it in upper case.
    ///
    /// Source: RFC 9110 §9.
    public var method: String

    /// The headers by name; no two names may differ only in case.
    ///
    /// Those of the connection, such as `Content-Length`, `Host` and `Connection`, are an error: they follow from the URL and the
    /// body (RFC 9110 §7.6.1).
    ///
    /// A request with its own `Authorization`, or its own value where ``OriginTokens`` put the token, gets none.
    public var headers: [String: String]

    /// Parameters that are added to the URL's query, in this order, each encoded.
    public var query: [URLQueryItem]

    /// The body; set its type in the header `Content-Type`.
    public var body: Body?

    /// The longest response body that is read, in bytes after decompression, 64 MiB by default; a longer one ends with
    /// `responseTooLong`.
    ///
    /// The transfer is cancelled before the body fills the memory. On Linux, some tens of MiB more arrive before `URLSession`
    /// stops, and the body of a redirect has no limit: the request ends at the session's time limit, the transfer when the server
    /// stops sending.
    public var responseLimit: Int

    /// Creates a request from its parts.
    public init(
        url: URL,
        method: String = "GET",
        headers: [String: String] = [:],
        query: [URLQueryItem] = [],
        body: Body? = nil,
        responseLimit: Int = 64 << 20
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.query = query
        self.body = body
        self.responseLimit = responseLimit
    }
}

extension Request: Redacted {
    /// Method, host and path, as they are sent; neither query, headers nor body, any of which may be secret.
    package var text: String {
        let method = HTTPToken.isValid(method) ? method : "an invalid method:"
        return "\(method) \(url.host(percentEncoded: true) ?? "nowhere")\(url.path(percentEncoded: true))"
    }
}
