#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Compares the time of a refused proof with the server's.
package enum ProofClock {
    /// The smallest difference worth reporting: servers tolerate some seconds, and an answer may take some.
    private static let tolerance = 30.0

    /// Returns a note if the server's clock differs; `nil` if it doesn't, or is unknown.
    ///
    /// - Parameters:
    ///   - issued: The proof's own time.
    ///   - date: The answer's header `Date`.
    package static func note(issued: Date, date: String?) -> String? {
        guard let server = date.flatMap({ HTTPDate.parse($0, now: issued) }), abs(server.timeIntervalSince(issued)) > tolerance
        else { return nil }
        return "correct this machine's clock, or the server's: the proof was made at \(issued.formatted(.iso8601)), "
            + "and the server's Date is \(server.formatted(.iso8601))"
    }
}
