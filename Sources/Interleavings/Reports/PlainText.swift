/// Cleans, measures and wraps texts from the code under test, which may have any length and any characters.
enum PlainText {
    /// Returns a text that is safe in a terminal and valid in XML, with its letters in order.
    ///
    /// Control characters become their pictures, as ␛ for an escape. A line break becomes a space, or stays.
    static func clean(_ text: String, keepsLines: Bool = false) -> String {
        var cleaned = ""
        for character in text.prefix(longest) {
            if character.isNewline {
                cleaned += keepsLines ? "\n" : " "
            } else {
                // A letter with many accents would cover neighbouring lines.
                for scalar in character.unicodeScalars.prefix(12) { cleaned.unicodeScalars.append(clean(scalar)) }
            }
        }
        return cleaned
    }

    /// Returns an error's description up to its first blank line: enough for a diagram, since the report has the whole text.
    static func beginning(of error: any Error) -> String {
        let lines = "\(error)".split(separator: "\n", omittingEmptySubsequences: false)
        return lines.prefix { !$0.isEmpty }.joined(separator: "\n")
    }

    /// The length of the longest text that a report shows, in characters.
    private static let longest = 4_000

    private static func clean(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x09: " "
        case 0x00..<0x20: Unicode.Scalar(0x2400 + scalar.value) ?? replacement
        case 0x7F..<0xA0, 0xFFFE, 0xFFFF: replacement
        // Invisible marks, and those that reverse the order of the following text.
        case 0x061C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xE0000...0xE007F: replacement
        default: scalar
        }
    }

    private static let replacement: Unicode.Scalar = "\u{FFFD}"

    /// Returns how many cells a text takes in a terminal.
    static func cells(_ text: some StringProtocol) -> Int {
        text.reduce(0) { $0 + ($1.unicodeScalars.contains(where: isWide) ? 2 : 1) }
    }

    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case ..<0x1100: false
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE0F, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            true
        default: scalar.properties.isEmojiPresentation
        }
    }

    /// Breaks a text at its spaces; breaks a word only if it is longer than a line.
    ///
    /// - Parameters:
    ///   - width: The width of a line, in the units of `measure`.
    ///   - most: The largest number of lines; if there are more, the last one ends with an ellipsis.
    ///   - measure: Returns the width of a text.
    static func wrap(_ text: String, to width: Int, most: Int = .max, measure: (String) -> Int = { cells($0) }) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") where lines.count <= most {
            let longer = line.isEmpty ? String(word) : "\(line) \(word)"
            if measure(longer) <= width {
                line = longer
                continue
            }
            if !line.isEmpty { lines.append(line) }
            line = ""
            for character in word where lines.count <= most {
                if !line.isEmpty, measure("\(line)\(character)") > width {
                    lines.append(line)
                    line = ""
                }
                line.append(character)
            }
        }
        lines.append(line)
        guard lines.count > most else { return lines }
        var last = lines[most - 1]
        while !last.isEmpty, measure(last + "…") > width { last.removeLast() }
        return lines[..<(most - 1)] + [last + "…"]
    }

    /// Returns a time with its unit, such as `1.5 s`.
    static func time(_ time: Duration) -> String {
        let (seconds, rest) = time.components
        let (value, unit) =
            if seconds != 0 || rest == 0 {
                (Double(seconds) + Double(rest) / 1e18, "s")
            } else if abs(rest) >= 1_000_000_000_000_000 {
                (Double(rest) / 1e15, "ms")
            } else {
                (Double(rest) / 1e9, "ns")
            }
        let rounded = (value * 1_000).rounded() / 1_000
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? "\(Int(rounded)) \(unit)" : "\(rounded) \(unit)"
    }
}
