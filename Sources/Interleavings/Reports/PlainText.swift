/// Texts that come from the code under test: any character may be in them, and any number.
enum PlainText {
    /// Makes a text that changes neither the terminal's state nor the order of letters, and may stand in XML.
    ///
    /// Controls become their pictures: an escape becomes ␛. A line break becomes a space, or remains.
    static func clean(_ text: String, keepsLines: Bool = false) -> String {
        var cleaned = ""
        for character in text.prefix(longest) {
            if character.isNewline {
                cleaned += keepsLines ? "\n" : " "
            } else {
                // A letter with a heap of accents covers its neighbours.
                for scalar in character.unicodeScalars.prefix(12) { cleaned.unicodeScalars.append(clean(scalar)) }
            }
        }
        return cleaned
    }

    /// Nobody reads more.
    private static let longest = 4_000

    private static func clean(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0x09: " "
        case 0x00..<0x20: Unicode.Scalar(0x2400 + scalar.value) ?? replacement
        case 0x7F..<0xA0, 0xFFFE, 0xFFFF: replacement
        // Marks that reverse the order of what follows, or hide it.
        case 0x061C, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xE0000...0xE007F: replacement
        default: scalar
        }
    }

    private static let replacement: Unicode.Scalar = "\u{FFFD}"

    /// How many cells of a terminal a text takes.
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

    /// Breaks a text at its spaces, and a word that is too long anywhere.
    ///
    /// - Parameters:
    ///   - width: How wide a line may be, as `measure` counts.
    ///   - most: How many lines there may be; the last then ends with an ellipsis.
    ///   - measure: How wide a text is.
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

    /// A time with its unit: `1.5 s`.
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
