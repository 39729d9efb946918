public import TokenServiceConcurrency
import TokenServiceHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Anything that can carry one request to an authorization server and bring back the answer.
///
/// The one seam between the loaders and the network, so that a server program can bring its own HTTP client:
///
/// ```swift
/// struct MyTransport: TokenTransport {
///     @concurrent func send(_ request: TokenRequest) async throws -> TokenResponse { ... }
/// }
/// ```
///
/// A transport follows no redirect, since the request carries the client's credentials (RFC 9700 §4.12); sends a request
/// once, however it fails (§4.14.2); ends by itself after a limit below `RefreshPolicy.loadTimeout`; stops receiving at
/// ``TokenResponse/maximumBodySize``; and puts no secret into the errors that it throws.
public protocol TokenTransport: Sendable {
    /// Sends a request and returns the answer, whatever its status.
    ///
    /// Concurrent calls are independent of each other. When its task is cancelled, it ends promptly with
    /// `CancellationError`; any other error is taken for one of the network, which time may cure. If it is certain that nothing was
    /// sent, throw ``OAuthError/notSent(_:underlying:)``.
    @concurrent func send(_ request: TokenRequest) async throws -> TokenResponse
}

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

/// An authorization server's answer, not yet read.
///
/// Its body carries tokens: no description, dump or mirror shows it.
public struct TokenResponse: Sendable, Hashable {
    /// The largest body that is read, in bytes after decompression (1 MiB): a token response has a few kilobytes.
    public static let maximumBodySize = 1 << 20

    /// The HTTP status code.
    public var status: Int

    /// The headers by name; ``header(_:)`` finds one in whatever case the server wrote it.
    public var headers: [String: String]

    /// The body, at most ``maximumBodySize`` bytes.
    public var body: Data

    /// Creates an answer from its parts.
    public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    public func header(_ name: String) -> String? {
        headers.header(name)
    }
}

extension TokenResponse: Redacted {
    /// The status and the size of the body, not its contents.
    public var description: String { "TokenResponse(status \(status), \(body.count) bytes)" }
}
