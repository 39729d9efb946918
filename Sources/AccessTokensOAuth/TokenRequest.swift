public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request to an authorization server, to be sent as a `POST`.
///
/// Its headers and body carry the client's credentials: no description, dump or mirror shows them.
///
/// Source: RFC 6749 §3.2.
public struct TokenRequest: Sendable, Hashable {
    /// Where to send it: the endpoint with its query, and no credentials.
    public var url: URL

    /// The headers by name, `Content-Type` and `Accept` among them.
    public var headers: [String: String]

    /// The form, encoded.
    public var body: Data

    /// Creates a request from its parts.
    public init(url: URL, headers: [String: String], body: Data) {
        self.url = url
        self.headers = headers
        self.body = body
    }
}

extension TokenRequest: Redacted {
    /// The host and the size of the form; neither its contents nor the values of headers.
    public var description: String { "TokenRequest(to \(url.host ?? "nowhere"), \(body.count) bytes)" }
}
