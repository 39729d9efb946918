public import TokenServiceConcurrency
import TokenServiceHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

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
