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
    /// Returns how long a server asks to wait: seconds, or the time from `now` until a date.
    ///
    /// `nil` for anything else, and for no wait at all (zero, a date in the past), which must not end the client's own pause.
    static func wait(_ value: String, now: Date) -> Duration? {
        let value = value.trimming { $0 == " " || $0 == "\t" }
        let seconds =
            !value.isEmpty && value.utf8.allSatisfy(\.isDigit)
            ? Double(value) : HTTPDate.parse(value, now: now)?.timeIntervalSince(now)
        // A number so long that it overflows to infinity counts as the longest wait.
        guard let seconds, let wait = Duration.seconds(read: min(seconds, .greatestFiniteMagnitude)), wait > .zero else {
            return nil
        }
        return wait
    }
}

extension StringProtocol {
    /// Returns the text without the characters at both ends that satisfy a condition.
    func trimming(while condition: (Character) -> Bool) -> String {
        String(drop(while: condition).reversed().drop(while: condition).reversed())
    }
}
