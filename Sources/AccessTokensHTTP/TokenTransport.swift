import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Anything that can send one request with secrets to a server and return the answer.
///
/// The package reaches authorization servers and etcd only through this protocol, so a server program can use its own HTTP
/// client:
///
/// ```swift
/// struct MyTransport: TokenTransport {
///     @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse { ... }
/// }
/// ```
///
/// A transport follows no redirect, since the request carries credentials (RFC 9700 §4.12); sends a request once, however it
/// fails (§4.14.2); ends after ``TransportRequest/timeLimit``; stops receiving at ``TransportRequest/maximumBodySize``; and puts
/// no secret into the errors that it throws.
public protocol TokenTransport: Sendable {
    /// Sends a request and returns the answer, whatever its status.
    ///
    /// Concurrent calls are independent of each other. When its task is cancelled, it ends promptly with `CancellationError`.
    ///
    /// - Throws: ``TransportError/notSent(_:underlying:)`` if no byte of the request can have reached the server: then a refresh
    ///   token may be presented again at once, and the next member of a cluster asked even for a change. After any other error
    ///   the request counts as one that may have been executed.
    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse
}

extension TokenTransport {
    /// Sends a request unless its task is cancelled.
    ///
    /// Turns every error into a ``TransportError`` without secrets, except a cancellation and the error that a load's time is
    /// over.
    ///
    /// - Parameter secrets: The secrets, which must appear in no text.
    package func answer(to request: TransportRequest, hiding secrets: [String]) async throws -> TransportResponse {
        func safe(_ words: String) -> String { ServerText.safe(words, hiding: secrets) }
        do {
            try Task.checkCancellation()
            return try await send(request)
        } catch {
            if error is NotSent { throw error }
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            switch error as? TransportError {
            case .notSent(let reason, let underlying): throw TransportError.notSent(safe(reason), underlying: underlying)
            case .connectionLost(let reason, let underlying):
                throw TransportError.connectionLost(safe(reason), underlying: underlying)
            case .invalidConfiguration(let problem): throw TransportError.invalidConfiguration(safe(problem))
            case let known?: throw known
            case nil: throw TransportError(error, saying: safe(String(describing: error)))
            }
        }
    }
}

/// A request with secrets, to be sent once.
///
/// Its headers and body carry credentials: no description, dump or mirror shows them.
public struct TransportRequest: Sendable, Hashable {
    /// Where to send it, with the query, and no credentials.
    public var url: URL

    /// The method: `POST` for nearly all requests, `GET` for those that only read.
    public var method: String

    /// The headers by name, including those that describe the body.
    public var headers: [String: String]

    /// The body; empty for a `GET`.
    public var body: Data

    /// How long the exchange may take altogether, from the connection to the last byte: 0.1 s through one hour.
    public var timeLimit: Duration { didSet { timeLimit = Self.kept(timeLimit) } }

    /// The longest body of an answer that is received, in bytes after decompression.
    public var maximumBodySize: Int

    /// Creates a request from its parts.
    ///
    /// - Parameters:
    ///   - url: Where to send it, with the query, and no credentials.
    ///   - method: `POST` by default.
    ///   - headers: The headers by name.
    ///   - body: The body; it isn't sent with a `GET`.
    ///   - timeLimit: How long the exchange may take altogether, 20 s by default. Clamped to 0.1 s through one hour.
    ///   - maximumBodySize: The longest body that is received, 1 MiB by default: a token response has a few kilobytes.
    public init(
        url: URL, method: String = "POST", headers: [String: String] = [:], body: Data = Data(),
        timeLimit: Duration = .seconds(20), maximumBodySize: Int = 1 << 20
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.body = body
        self.timeLimit = Self.kept(timeLimit)
        self.maximumBodySize = maximumBodySize
    }

    private static func kept(_ limit: Duration) -> Duration { min(max(limit, .milliseconds(100)), .seconds(3600)) }
}

extension TransportRequest: Redacted {
    /// The method, the host and the size of the body; neither its contents nor the values of headers.
    package var text: String {
        let host = url.host(percentEncoded: true) ?? "nowhere"
        return "TransportRequest(\(ServerText.line(method)) to \(host), \(body.count) bytes)"
    }
}

/// A server's complete answer, not yet read.
///
/// Its body carries tokens: no description, dump or mirror shows it.
public struct TransportResponse: Sendable, Hashable {
    /// The HTTP status code.
    public var status: Int

    /// The headers by name; ``header(_:)`` ignores their case.
    ///
    /// Several headers of one name are joined with a comma and a space (RFC 9110 §5.3).
    public var headers: [String: String]

    /// The body, at most as long as the request's ``TransportRequest/maximumBodySize``.
    public var body: Data

    /// Whether it answers a request with a bearer token, so that what it says of bound tokens isn't about that one.
    package var isForBearer = false

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

extension TransportResponse: Redacted {
    /// The status and the size of the body, not its contents.
    package var text: String { "TransportResponse(status \(status), \(body.count) bytes)" }
}

extension [String: String] {
    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    ///
    /// The values of names that differ in case are joined by commas, as those of one name are (§5.2), in any order.
    package func header(_ name: String) -> String? {
        let name = name.lowercased()
        var found: String?
        for (key, value) in self where key.lowercased() == name { found = found.map { "\($0), \(value)" } ?? value }
        return found
    }
}
