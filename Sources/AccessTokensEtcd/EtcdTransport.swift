/// Anything that can carry one request to an etcd endpoint and bring back the answer.
///
/// The one seam between the store and the network. A server program with an HTTP client of its own, or with certificates of a
/// private authority, which `URLSession` on Linux doesn't accept, brings it here:
///
/// ```swift
/// struct MyTransport: EtcdTransport {
///     @concurrent func send(_ request: EtcdRequest) async throws -> EtcdResponse { ... }
/// }
/// ```
///
/// A transport sends a request once, however it fails: the store decides what may be sent again. It follows no redirect, since the
/// request carries the record; ends by itself after ``EtcdRequest/timeLimit``; stops receiving at
/// ``EtcdResponse/maximumBodySize``; and puts no secret into the errors that it throws.
public protocol EtcdTransport: Sendable {
    /// Sends a request as a `POST` and returns the answer, whatever its status.
    ///
    /// Concurrent calls are independent of each other. When its task is cancelled, it ends promptly with `CancellationError`.
    ///
    /// - Throws: ``EtcdError/notSent(_:underlying:)`` if no byte of the request can have reached the server, so that the next
    ///   endpoint may be asked even for a swap. After any other error the store assumes that the request may have been executed.
    @concurrent func send(_ request: EtcdRequest) async throws -> EtcdResponse
}
