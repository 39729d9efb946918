extension Duration {
    /// The whole nanoseconds of a duration of less than 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max : product + attoseconds / 1_000_000_000
    }

    /// The duration in a suitable unit, with two or three digits.
    var short: String {
        let units: [(size: Double, from: Double, name: String)] = [
            (3600e9, 2, "h"), (60e9, 2, "min"), (1e9, 1, "s"), (1e6, 1, "ms"), (1e3, 1, "µs"),
        ]
        let value = Double(nanoseconds)
        guard let unit = units.first(where: { value >= $0.size * $0.from }) else { return "\(nanoseconds) ns" }
        let number = value / unit.size
        return "\(number < 10 ? "\((number * 10).rounded() / 10)" : "\(Int(number.rounded()))") \(unit.name)"
    }

    /// Returns a line of a log: this time since the start in a column, to the millisecond, and a text.
    func line(_ text: String) -> String {
        let milliseconds = nanoseconds / 1_000_000
        let stamp = "\(milliseconds / 1000).\("\(1000 + milliseconds % 1000)".dropFirst()) s"
        let column = 10
        let space = String(repeating: " ", count: max(column - stamp.count, 0))
        return "\(space)\(stamp)  \(text)".wrapped(indent: column + 2)
    }
}

/// A number with its noun.
func counted(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
}
