import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Proves with each request that it comes from the owner of a key, so that a stolen token is useless without the key.
///
/// `DPoPKey`, of the module `AccessTokensDPoP`, is one. Clients and data loaders request a proof for each request that they send.
///
/// Source: RFC 9449.
public protocol TokenProof: Sendable {
    /// The thumbprint that identifies the key (RFC 7638).
    var keyThumbprint: String { get }

    /// Returns the proof for sending one request once.
    ///
    /// Concurrent calls are independent. Nothing has been sent when it throws.
    ///
    /// - Parameters:
    ///   - method: The request's HTTP method.
    ///   - url: Where the request goes.
    ///   - accessToken: The token that it carries; `nil` if it is sent to an authorization server.
    ///   - nonce: The nonce that the server has just asked for; `nil`: the server's last known one.
    @concurrent func proof(method: String, url: URL, accessToken: String?, nonce: String?) async throws -> RequestProof

    /// Remembers the nonce in a server's answer for the next requests to its origin, and returns it; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - headers: The headers of any answer.
    ///   - url: Where the request went.
    /// - Throws: An error that describes the invalid nonce, which isn't remembered.
    func nonce(in headers: [String: String], from url: URL) throws -> String?
}

/// The proof of one request.
///
/// No description, dump or mirror shows it.
public struct RequestProof: Sendable, Hashable {
    /// The headers to add to the request, in place of those of the same name.
    public let headers: [String: String]

    package let nonce: String?
    package let issued: Date

    /// Creates a proof from its parts.
    ///
    /// - Parameters:
    ///   - headers: What to add to the request, in place of a header of the same name.
    ///   - nonce: The nonce in it; `nil` if it has none.
    ///   - issued: The proof's own time, to be compared with the server's `Date` if the server refuses the proof.
    public init(headers: [String: String], nonce: String?, issued: Date) {
        self.headers = headers
        self.nonce = nonce
        self.issued = issued
    }

    /// The secrets that no text may show: each header's value, the parts of a signed token, and the nonce.
    package var secrets: [String] {
        let parts = headers.values.flatMap { $0.split(separator: ".") }.filter { $0.utf8.count >= 16 }
        return Array(headers.values) + parts.map(String.init) + [nonce].compactMap(\.self)
    }
}

extension RequestProof: Redacted {
    /// Whether it has a nonce.
    package var text: String { "RequestProof(\(nonce == nil ? "without a nonce" : "with a nonce"))" }
}

/// Compares the time of a refused proof or assertion with the server's.
package enum ProofClock {
    /// The smallest difference worth reporting: servers tolerate a few seconds, and an answer may take a few.
    private static let tolerance = 30.0

    /// Returns a note if the server's clock differs; `nil` if it doesn't, or is unknown.
    ///
    /// - Parameters:
    ///   - subject: What was refused, and what was done at that time.
    ///   - issued: The proof's own time.
    ///   - date: The answer's header `Date`.
    package static func note(_ subject: String = "the proof was made", issued: Date, date: String?) -> String? {
        guard let server = date.flatMap({ HTTPDate.parse($0, now: issued) }), abs(server.timeIntervalSince(issued)) > tolerance
        else { return nil }
        return "correct this machine's clock, or the server's: \(subject) at \(issued.formatted(.iso8601)), "
            + "and the server's Date is \(server.formatted(.iso8601))"
    }
}
