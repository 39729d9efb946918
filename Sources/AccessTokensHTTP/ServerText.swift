#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A server's text, made safe to print.
package enum ServerText {
    /// Long enough for an explanation, short enough for a line of a log.
    static let maximumLength = 300

    /// A shorter secret is hidden only where it is a whole word, in the same case: it is a part of too many other words.
    static let shortestSecret = 6

    /// Returns the text in one line without control or invisible characters, without the secrets, and cut if it is long.
    ///
    /// A secret is hidden as it is, in Base64, and escaped in any way that ``Unescaped`` undoes, also more than once; so is what
    /// looks like one (``SecretScanner``). The following is not hidden: a part of a secret; Base64 of Base64, hexadecimal digits,
    /// and other encodings; a secret that holds a backslash before a letter and was escaped; one that was escaped three or more
    /// times in different ways that combine differently escaped backslashes, since their order is unknown; one of fewer than six
    /// characters inside a longer word.
    ///
    /// The order matters. Secrets are hidden after invisible characters were replaced, which could disguise one, and before
    /// the text is cut, which could leave the first part of one.
    package static func safe(_ text: String, hiding secrets: [String]) -> String {
        // Bytes, not characters: a combining accent after a secret would change its last character.
        let bytes = visible(text)
        let unescaped = Unescaped(bytes)
        var found = SecretScanner.ranges(in: bytes)
        let secrets = Set(secrets), short = secrets.filter { $0.unicodeScalars.count < shortestSecret }
        // Search the original text, too: the text before a secret may look like the beginning of an escape.
        for secret in Set(secrets.subtracting(short).map(visible)) { found += ranges(of: secret, in: bytes) }
        for secret in Set(secrets.subtracting(short).flatMap(spellings)) {
            found += ranges(of: secret, in: unescaped.bytes).map(unescaped.source)
        }
        let exact = Unescaped(short.isEmpty ? [] : bytes, isFolded: false)
        for secret in Set(short.flatMap(exactSpellings)) {
            found += words(secret, in: bytes) + words(secret, in: exact.bytes).map(exact.source)
        }
        return line(hide(found, in: bytes))
    }

    /// Returns the text likewise, for a name that the program has chosen: nothing in it is a secret.
    package static func line(_ text: String) -> String { line(visible(text)) }

    private static func line(_ bytes: [UInt8]) -> String {
        let line = String(decoding: bytes, as: UTF8.self).split(separator: " ").joined(separator: " ")
        return line.unicodeScalars.count <= maximumLength
            ? line : String(String.UnicodeScalarView(line.unicodeScalars.prefix(maximumLength))) + "…"
    }

    /// Returns the spellings of a short secret that has not been escaped.
    private static func exactSpellings(_ secret: String) -> [[UInt8]] {
        let base64 = Data(secret.utf8).base64EncodedString()
        return [Array(secret.utf8), visible(secret)]
            + [secret.replacing(" ", with: "+"), base64, String(base64.prefix { $0 != "=" })].map { Array($0.utf8) }
    }

    /// Returns where a short secret is a word of its own.
    private static func words(_ secret: [UInt8], in bytes: [UInt8]) -> [Range<Int>] {
        // A byte of a character beyond ASCII counts as a part of a word.
        func isInWord(_ index: Int) -> Bool {
            bytes.indices.contains(index)
                && (bytes[index].isAlphanumeric || bytes[index] == UInt8(ascii: "_") || bytes[index] >= 0x80)
        }
        guard !secret.isEmpty, secret.count <= bytes.count else { return [] }
        return (0...(bytes.count - secret.count)).compactMap { start in
            let end = start + secret.count
            return bytes[start...].starts(with: secret) && !isInWord(start - 1) && !isInWord(end) ? start..<end : nil
        }
    }

    /// Returns the spellings of a secret in an unescaped text.
    private static func spellings(_ secret: String) -> [[UInt8]] {
        let base64 = Data(secret.utf8).base64EncodedString()
        var spellings = [secret, base64, String(base64.prefix { $0 != "=" })].map { Array($0.utf8) }
        spellings.append(visible(secret))
        for offset in 0...2 { spellings.append(base64Core(secret, at: offset)) }
        return spellings.map { Unescaped($0).bytes }
    }

    /// Returns the Base64 characters that depend only on the secret, when it is inside a longer text; none if it is short.
    ///
    /// - Parameter offset: How many bytes of a group of three precede it.
    private static func base64Core(_ secret: String, at offset: Int) -> [UInt8] {
        let bytes = [UInt8](repeating: 0, count: offset) + secret.utf8
        guard bytes.count >= offset + 8 else { return [] }
        return Array(Array(Data(bytes).base64EncodedString().utf8)[(offset * 8 + 5) / 6..<bytes.count * 8 / 6])
    }

    /// Returns the bytes with `[hidden]` for each range; ranges that overlap are one.
    private static func hide(_ ranges: [Range<Int>], in bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var end = 0
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if range.lowerBound >= end {
                result += bytes[end..<range.lowerBound]
                result += Array("[hidden]".utf8)
            }
            end = max(end, range.upperBound)
        }
        return result + bytes[end...]
    }

    /// Returns where a secret occurs, in linear time: a server can choose a text of a megabyte, and tokens too.
    ///
    /// Source: Knuth, Morris, Pratt, "Fast pattern matching in strings" (1977).
    private static func ranges(of secret: [UInt8], in bytes: [UInt8]) -> [Range<Int>] {
        guard !secret.isEmpty, secret.count <= bytes.count else { return [] }
        // For each prefix of the secret: the length of its longest proper suffix that is also a prefix.
        var overlaps = [0]
        for index in secret.indices.dropFirst() {
            overlaps.append(extended(overlaps[index - 1], by: secret[index], of: secret, overlaps))
        }
        var ranges: [Range<Int>] = []
        var matched = 0
        for (index, byte) in bytes.enumerated() {
            matched = extended(matched, by: byte, of: secret, overlaps)
            guard matched == secret.count else { continue }
            ranges.append(index + 1 - matched..<index + 1)
            matched = 0
        }
        return ranges
    }

    /// Returns the length of the secret's prefix that ends at a byte, given the length that ended before it.
    private static func extended(_ matched: Int, by byte: UInt8, of secret: [UInt8], _ overlaps: [Int]) -> Int {
        var matched = matched
        while matched > 0, secret[matched] != byte { matched = overlaps[matched - 1] }
        return secret[matched] == byte ? matched + 1 : 0
    }

    /// Returns the text in UTF-8 with a space in place of each invisible character.
    private static func visible(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if isVisible(scalar) { bytes.append(contentsOf: scalar.utf8) } else { bytes.append(UInt8(ascii: " ")) }
        }
        return bytes
    }

    /// Returns whether a character shows; a space does.
    package static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return 0x20...0x7E ~= scalar.value }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned, .surrogate: return false
        default: return true
        }
    }
}
