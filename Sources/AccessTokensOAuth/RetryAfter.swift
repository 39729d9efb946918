import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The header `Retry-After`.
///
/// Source: RFC 9110 §10.2.3.
enum RetryAfter {
    /// Returns how long an answer asks to wait: a number of seconds, or the time until a date.
    ///
    /// A date is compared with the answer's own `Date`: this machine's clock may differ from the server's by hours. If gateways
    /// have added values, the longest one counts. `nil` for anything else, and for no wait at all (zero, a date in the past),
    /// which must not end the client's own pause.
    ///
    /// - Parameter now: The time on this machine, for an answer without a readable `Date`.
    static func wait(in answer: TransportResponse, now: Date) -> Duration? {
        guard let value = answer.header("Retry-After") else { return nil }
        let sent = moment(of: answer, now: now)
        let seconds = members(value).filter { !$0.isEmpty && $0.utf8.allSatisfy(\.isDigit) }.compactMap { Double($0) }
        // A number so long that it overflows to infinity counts as the longest wait.
        let waits = (seconds + dates(in: value, now: sent).map { $0.timeIntervalSince(sent) }).compactMap {
            Duration.seconds(read: min($0, .greatestFiniteMagnitude))
        }
        return waits.max().flatMap { $0 > .zero ? $0 : nil }
    }

    /// Returns when the server sent the answer, by its own clock, or else by this machine's.
    static func moment(of answer: TransportResponse, now: Date) -> Date {
        answer.header("Date").flatMap { dates(in: $0, now: now).first } ?? now
    }

    /// Returns the dates in a list, most of which contain a comma themselves.
    private static func dates(in list: String, now: Date) -> [Date] {
        let members = members(list)
        let pairs = zip(members, members.dropFirst()).map { "\($0), \($1)" }
        return (members + pairs).compactMap { HTTPDate.parse($0, now: now) }
    }

    private static func members(_ list: String) -> [String] {
        list.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimming { $0 == " " || $0 == "\t" } }
    }
}

extension StringProtocol {
    /// Returns the text without the characters at both ends that satisfy a condition.
    func trimming(while condition: (Character) -> Bool) -> String {
        String(drop(while: condition).reversed().drop(while: condition).reversed())
    }
}
