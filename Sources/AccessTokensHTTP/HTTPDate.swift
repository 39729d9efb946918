#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// A date in a header.
///
/// Source: RFC 9110 §5.6.7.
package enum HTTPDate {
    /// Returns the date, in any of the three formats that a recipient must accept; `nil` if the text is not a date.
    ///
    ///     Sun, 06 Nov 1994 08:49:37 GMT       IMF-fixdate
    ///     Sunday, 06-Nov-94 08:49:37 GMT      RFC 850
    ///     Sun Nov  6 08:49:37 1994            asctime
    ///
    /// The name of the day is not compared with the date.
    ///
    /// - Parameter now: The reference for a year of two digits, which is at most 50 years later.
    package static func parse(_ text: String, now: Date) -> Date? {
        // No date is longer, so a longer text needs no splitting.
        guard text.utf8.count <= 40 else { return nil }
        let parts = text.split { " ,-:".contains($0) }
        switch parts.count {
        case 8 where parts[7] == "GMT":
            return date(day: parts[1], month: parts[2], year: parts[3], time: parts[4...6], now: now)
        case 7:
            return date(day: parts[2], month: parts[1], year: parts[6], time: parts[3...5], now: now)
        default: return nil
        }
    }

    private static func date(
        day: Substring, month: Substring, year: Substring, time: ArraySlice<Substring>, now: Date
    ) -> Date? {
        let time = time.compactMap { number($0, in: 0...60) }
        guard let day = number(day, in: 1...31), let month = months.firstIndex(of: String(month)), time.count == 3,
            var fullYear = number(year, in: 0...9_999)
        else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        if year.utf8.count == 2 {
            let latest = calendar.component(.year, from: now) + 50
            fullYear = latest - (latest - fullYear) % 100
        }
        // A leap second counts as the second after it.
        let components = DateComponents(
            year: fullYear, month: month + 1, day: day, hour: time[0], minute: time[1], second: min(time[2], 59))
        guard components.isValidDate(in: calendar), let date = calendar.date(from: components) else { return nil }
        return time[2] == 60 ? date.addingTimeInterval(1) : date
    }

    private static func number(_ text: Substring, in range: ClosedRange<Int>) -> Int? {
        guard let number = Int(text), range.contains(number), text.utf8.first != UInt8(ascii: "+") else { return nil }
        return number
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
