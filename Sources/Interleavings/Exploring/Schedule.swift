import TokenServiceConcurrency

/// The choices of one execution, enough to run it again: `"0.2.1"` picks the first candidate, then the third, then the second.
///
/// Choices are counted only where there was more than one candidate; after the last one the first candidate is picked.
package struct Schedule: Sendable, Hashable, Described, ExpressibleByStringLiteral {
    /// The picks, each counted from 0.
    package let choices: [Int]

    /// Creates a schedule without the zeros at the end; a negative pick counts as 0.
    package init(choices: [Int]) {
        let end = choices.lastIndex { $0 > 0 }.map { $0 + 1 } ?? 0
        self.choices = choices[..<end].map { max($0, 0) }
    }

    /// Reads a schedule from its description; `nil` if the text is not a schedule.
    package init?(_ description: String) {
        guard !description.isEmpty else {
            self.init(choices: [])
            return
        }
        var choices: [Int] = []
        for part in description.split(separator: ".", omittingEmptySubsequences: false) {
            guard let choice = Int(part), choice >= 0 else { return nil }
            choices.append(choice)
        }
        self.init(choices: choices)
    }

    /// Reads a schedule from its description; a part that is not a number becomes a pick that makes the replay fail.
    package init(stringLiteral value: String) {
        let parts = value.split(separator: ".", omittingEmptySubsequences: false)
        self = Schedule(value) ?? Schedule(choices: parts.map { Int($0).flatMap { $0 < 0 ? nil : $0 } ?? .max })
    }

    /// The picks, separated by periods.
    package var text: String { choices.map(Self.text).joined(separator: ".") }

    static func text(of choice: Int) -> String { choice == .max ? "?" : "\(choice)" }
}
