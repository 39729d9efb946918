public import Foundation
public import TokenServiceConcurrency
import TokenServiceHTTP

/// A server's complete answer.
public struct Response: Sendable {
    /// Where it came from: the request's own URL, or the last one that the request was redirected to.
    public let url: URL

    /// The HTTP status code.
    public let status: Int

    /// The headers by name; ``header(_:)`` finds one in whatever case the server wrote it.
    public let headers: [String: String]

    /// The body, empty if there was none.
    public let body: Data

    /// Creates an answer from its parts.
    public init(url: URL, status: Int, headers: [String: String] = [:], body: Data = Data()) {
        self.url = url
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    public func header(_ name: String) -> String? {
        headers.header(name)
    }

    /// Returns the value that the body holds.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: What reads the body.
    /// - Throws: ``DataLoadingError`` with the code `undecodable`, which has this response and the decoder's error.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws(DataLoadingError) -> Value {
        do {
            return try decoder.decode(type, from: body)
        } catch {
            throw DataLoadingError(.undecodable, detail: "\(type)", response: self, underlying: error)
        }
    }
}

extension Response: Redacted {
    /// The status and the size of the body, not its contents.
    public var description: String { "Response(status \(status), \(body.count) bytes)" }
}
