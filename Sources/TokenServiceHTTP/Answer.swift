#if URLSession
package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server's complete answer, whatever its status.
package struct Answer: Sendable {
    package let status: Int
    package let headers: [String: String]
    package let body: Data

    init(status: Int, headers: [String: String], body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Reads the head of an answer; `nil` if it is not HTTP.
    init?(_ response: URLResponse?, body: Data) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var headers: [String: String] = [:]
        for case let (name as String, value as String) in response.allHeaderFields { headers[name] = value }
        self.init(status: response.statusCode, headers: headers, body: body)
    }
}
#endif
