#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Compares the time of a refused proof with the server's.
package enum ProofClock {
    /// The least difference that is worth a note: servers tolerate some seconds, and an answer may take some.
    private static let tolerance = 30.0

    /// Returns what to correct if the server's clock shows another time; `nil` if it doesn't, or the server didn't say.
    ///
    /// - Parameters:
    ///   - issued: When the proof said that it was made.
    ///   - date: The answer's header `Date`.
    package static func note(issued: Date, date: String?) -> String? {
        guard let server = date.flatMap({ HTTPDate.parse($0, now: issued) }), abs(server.timeIntervalSince(issued)) > tolerance
        else { return nil }
        return "correct this machine's clock, or the server's: the proof was made at \(issued.formatted(.iso8601)), "
            + "and the server's Date is \(server.formatted(.iso8601))"
    }
}
