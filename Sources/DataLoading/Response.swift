public import Foundation
import TokenServiceConcurrency
import AccessTokensHTTP

/// A server's complete response.
public struct Response: Sendable {
    /// The URL of the response: the request's own, or the last one that the request was redirected to.
    public let url: URL

    /// The HTTP status code.
    public let status: Int

    /// The headers by name; ``header(_:)`` finds a header whatever its case.
    public let headers: [String: String]

    /// The body, empty if there was none.
    public let body: Data

    /// Creates a response from its parts.
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

    /// Returns the value decoded from the body.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - decoder: Decodes the body.
    /// - Throws: ``DataLoadingError`` with the code `undecodable`, this response and the decoder's error.
    public func decoded<Value: Decodable>(
        as type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        do {
            return try decoder.decode(type, from: body)
        } catch {
            let place = (error as? DecodingError)?.place.map { " at '\($0)'" } ?? ""
            throw DataLoadingError(.undecodable, detail: "\(type)\(place)", response: self, underlying: error)
        }
    }
}

extension Response: Redacted {
    /// The status and the size of the body, not its contents.
    package var text: String { "Response(status \(status), \(body.count) bytes)" }
}

extension DecodingError {
    /// The path to the value that can't be read; `nil`: the whole body.
    fileprivate var place: String? {
        let path: [any CodingKey]
        switch self {
        case .keyNotFound(let key, let context): path = context.codingPath + [key]
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context): path = context.codingPath
        @unknown default: path = []
        }
        return path.isEmpty ? nil : path.map { $0.intValue.map(String.init) ?? $0.stringValue }.joined(separator: ".")
    }
}
