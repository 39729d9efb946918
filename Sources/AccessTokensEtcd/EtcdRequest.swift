public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A request to etcd's HTTP gateway, to be sent as a `POST`.
///
/// Its headers and body carry the record, the password or the authentication token: no description, dump or mirror shows them.
public struct EtcdRequest: Sendable, Hashable {
    /// Where to send it: an endpoint with the path of the operation.
    public var url: URL

    /// The headers by name.
    public var headers: [String: String]

    /// JSON.
    public var body: Data

    /// How long the exchange may take altogether, from the connection to the last byte.
    public var timeLimit: Duration

    /// Creates a request from its parts.
    public init(url: URL, headers: [String: String], body: Data, timeLimit: Duration) {
        self.url = url
        self.headers = headers
        self.body = body
        self.timeLimit = timeLimit
    }
}

extension EtcdRequest: Redacted {
    /// The host, the operation's path and the size of the body; neither its contents nor the values of headers.
    public var description: String { "EtcdRequest(\(url.path) to \(url.host ?? "nowhere"), \(body.count) bytes)" }
}

/// What an etcd endpoint answered, not yet read.
///
/// Its body carries the record or an authentication token: no description, dump or mirror shows it.
public struct EtcdResponse: Sendable, Hashable {
    /// The largest body that is read, in bytes (4 MiB): twice what etcd accepts as a record unless it is told to take more.
    public static let maximumBodySize = 4 << 20

    /// The HTTP status code.
    public var status: Int

    /// The body, at most ``maximumBodySize`` bytes.
    public var body: Data

    /// Creates an answer from its parts.
    public init(status: Int, body: Data) {
        self.status = status
        self.body = body
    }
}

extension EtcdResponse: Redacted {
    /// The status and the size of the body, not its contents.
    public var description: String { "EtcdResponse(status \(status), \(body.count) bytes)" }
}
