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
    /// `CancellationError`; any other error is taken for one of the network, which time may cure.
    @concurrent func send(_ request: TokenRequest) async throws -> TokenResponse
}
