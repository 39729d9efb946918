/// What a server wrote, made safe to print.
package enum ServerText {
    /// Long enough for an explanation, short enough for a line of a log.
    static let maximumLength = 300

    /// Returns the text in one line without control or invisible characters, without the secrets, and cut if it is long.
    ///
    /// The order matters. Secrets are hidden after invisible characters were replaced, which could disguise one, and before
    /// the text is cut, which could leave the first part of one.
    package static func safe(_ text: String, hiding secrets: [String]) -> String {
        // Bytes, not characters: a combining accent behind a secret would change its last character. The longest
        // secret first, for one may contain another.
        var bytes = visible(text)
        for secret in secrets.map(visible).sorted(by: { $0.count > $1.count }) { bytes = hide(secret, in: bytes) }
        let line = String(decoding: bytes, as: UTF8.self).split(separator: " ").joined(separator: " ")
        return line.unicodeScalars.count <= maximumLength
            ? line : String(String.UnicodeScalarView(line.unicodeScalars.prefix(maximumLength))) + "…"
    }

    /// Returns the bytes with `[hidden]` for each occurrence of the secret, in linear time: a server can choose
    /// a text of a megabyte, and tokens too.
    ///
    /// Source: Knuth, Morris, Pratt, "Fast pattern matching in strings" (1977).
    private static func hide(_ secret: [UInt8], in bytes: [UInt8]) -> [UInt8] {
        guard !secret.isEmpty, secret.count <= bytes.count else { return bytes }
        // For each beginning of the secret: how much of its end is a beginning of the secret too.
        var overlaps = [0]
        for index in secret.indices.dropFirst() {
            overlaps.append(extended(overlaps[index - 1], by: secret[index], of: secret, overlaps))
        }
        var result: [UInt8] = []
        var matched = 0
        for byte in bytes {
            matched = extended(matched, by: byte, of: secret, overlaps)
            result.append(byte)
            if matched == secret.count {
                result.removeLast(secret.count)
                result += Array("[hidden]".utf8)
                matched = 0
            }
        }
        return result
    }

    /// Returns how much of the secret's beginning ends at a byte, if so much of it ended before that byte.
    private static func extended(_ matched: Int, by byte: UInt8, of secret: [UInt8], _ overlaps: [Int]) -> Int {
        var matched = matched
        while matched > 0, secret[matched] != byte { matched = overlaps[matched - 1] }
        return secret[matched] == byte ? matched + 1 : 0
    }

    /// Returns the text in UTF-8 with a space for each character that does not show.
    private static func visible(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if isVisible(scalar) { bytes.append(contentsOf: scalar.utf8) } else { bytes.append(UInt8(ascii: " ")) }
        }
        return bytes
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return 0x20...0x7E ~= scalar.value }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned, .surrogate: return false
        default: return true
        }
    }
}
