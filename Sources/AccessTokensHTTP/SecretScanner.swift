/// Text of a server that looks like a credential, even an unknown one.
///
/// A server may quote tokens that it has just issued. Three signs reveal one: a name such as `refresh_token` before it, a scheme
/// such as `Bearer` before it, or a length and a mixture of characters that no word has. An identifier in lower case, such as a
/// UUID, is not hidden, since errors need it.
package enum SecretScanner {
    /// Returns the credentials in a body, to be hidden wherever the body is quoted; `nil` if there are more than in any useful
    /// answer.
    package static func values(in body: some Collection<UInt8>) -> [String]? {
        let unescaped = Unescaped(body, isFolded: false)
        let values = Set(words(in: unescaped.bytes).map { String(decoding: unescaped.bytes[$0], as: UTF8.self) })
        return values.count <= 16 ? Array(values) : nil
    }

    /// Returns the ranges of credentials in a text.
    static func ranges(in text: [UInt8]) -> [Range<Int>] {
        let unescaped = Unescaped(text, isFolded: false)
        return words(in: unescaped.bytes).map(unescaped.source)
    }

    private static func words(in text: [UInt8]) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var previous = 0..<0
        var start = 0
        while let first = text[start...].firstIndex(where: isWord) {
            let end = text[first...].firstIndex { !isWord($0) } ?? text.count
            let gap = text[previous.upperBound..<first]
            if isCredential(text[first..<end], after: text[previous], gap) { found.append(first..<end) }
            previous = first..<end
            start = end
        }
        return found
    }

    private static func isCredential(
        _ word: ArraySlice<UInt8>, after previous: ArraySlice<UInt8>, _ gap: ArraySlice<UInt8>
    ) -> Bool {
        let name = String(decoding: previous.suffix(40), as: UTF8.self).lowercased()
        let signs = gap.filter { !" \t\r\n\"'\\".utf8.contains($0) }
        if signs == [UInt8(ascii: "=")] || signs == [UInt8(ascii: ":")], names.contains(where: name.hasSuffix) {
            // Either in a form, in JSON or in a header's parameter, or else in a sentence, where an ordinary word may follow.
            let isValue = gap.elementsEqual(signs) && signs == [UInt8(ascii: "=")] || "\"'".utf8.contains(gap.last ?? 0)
            return isValue ? word.count >= 4 : word.count >= 6 && isMixed(word)
        }
        if signs.isEmpty, schemes.contains(name) { return word.count >= 6 && isMixed(word) }
        return word.split(separator: UInt8(ascii: "/")).contains { $0.count >= 24 && isRandom($0) }
    }

    private static let names = [
        "token", "secret", "password", "passwd", "assertion", "verifier", "api_key", "apikey", "device_code", "user_code",
    ]

    private static let schemes: Set<String> = ["bearer", "basic", "dpop", "negotiate"]

    private static func isWord(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || "-._~+/".utf8.contains(byte)
    }

    /// Whether the word can't belong to a natural language.
    private static func isMixed(_ word: ArraySlice<UInt8>) -> Bool {
        word.contains(where: \.isDigit) || (word.dropFirst().contains(where: isUpper) && word.contains(where: isLower))
    }

    private static func isRandom(_ word: ArraySlice<UInt8>) -> Bool {
        word.contains(where: \.isDigit) && word.contains(where: isUpper) && word.contains(where: isLower)
    }

    private static func isLower(_ byte: UInt8) -> Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte }
    private static func isUpper(_ byte: UInt8) -> Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte }
}
