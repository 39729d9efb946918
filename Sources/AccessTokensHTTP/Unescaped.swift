/// A text before it was escaped, for comparison with secrets.
///
/// Undoes the escapes of URLs, HTML, JSON and JavaScript, including nested ones; octal escapes of three digits; and code points
/// in braces, as in JavaScript, Swift, Rust, PHP and Perl.
///
/// Source: RFC 3986 §2.1; RFC 8259 §7; HTML §13.1.4.
struct Unescaped {
    private(set) var bytes: [UInt8] = []
    /// The range in the text that each byte came from.
    private var sources: [Range<Int>] = []
    private let isFolded: Bool
    /// Stands for a backslash that was escaped, which begins no escape before the next pass; UTF-8 never contains this byte.
    private static let spentBackslash: UInt8 = 0xFF

    /// Undoes the escapes of a text.
    ///
    /// - Parameter isFolded: Whether to unify spellings that often vary: upper and lower case; slash and underscore, which the
    ///   variants of Base64 use. Plus, minus, spaces and backslashes are dropped, so that line wrapping makes no difference.
    init(_ text: some Collection<UInt8>, isFolded: Bool = true) {
        self.isFolded = isFolded
        for (index, byte) in text.enumerated() { append(byte, from: index..<index + 1) }
        // A server chooses how often backslashes are escaped, and each level takes a pass. Levels with different kinds of escapes
        // may need different orders, which are not tried.
        for _ in 1...8 where bytes.contains(Self.spentBackslash) {
            let (before, starts) = (bytes, sources)
            (bytes, sources) = ([], [])
            for (byte, source) in zip(before, starts) {
                append(byte == Self.spentBackslash ? UInt8(ascii: "\\") : byte, from: source)
            }
        }
        guard isFolded else { return }
        let kept = bytes.indices.filter { ![UInt8(ascii: "\\"), Self.spentBackslash].contains(bytes[$0]) }
        (bytes, sources) = (kept.map { bytes[$0] }, kept.map { sources[$0] })
    }

    /// Returns the part of the text that a non-empty range of the bytes came from.
    func source(of range: Range<Int>) -> Range<Int> {
        sources[range.lowerBound].lowerBound..<sources[range.upperBound - 1].upperBound
    }

    /// Appends a byte and undoes the escapes that it completes: a loop, not recursion, since a server chooses the nesting depth.
    private mutating func append(_ byte: UInt8, from source: Range<Int>) {
        guard let byte = folded(byte) else { return }
        bytes.append(byte)
        sources.append(source)
        while let (length, unescaped) = escape {
            let source = sources[sources.count - length].lowerBound..<source.upperBound
            let isBackslash = unescaped == [UInt8(ascii: "\\")]
            bytes.removeLast(length)
            sources.removeLast(length)
            let unescaped = isBackslash ? [Self.spentBackslash] : unescaped.compactMap(folded)
            bytes += unescaped
            sources += unescaped.map { _ in source }
        }
    }

    /// The escape at the end: its length, and the bytes that it stands for, which are fewer.
    private var escape: (length: Int, unescaped: [UInt8])? {
        guard let last = bytes.last else { return nil }
        if last == UInt8(ascii: ";") { return entity }
        if last == UInt8(ascii: "}") { return bracedCodePoint }
        if bytes.dropLast().last == UInt8(ascii: "\\") {
            if #""\/'"#.utf8.contains(last) { return (2, [last]) }
            if "nrt".utf8.contains(last) { return (2, [UInt8(ascii: " ")]) }
        }
        guard last.isHexDigit else { return nil }
        if let byte = number(after: "%", digits: 2) { return (3, [UInt8(truncatingIfNeeded: byte)]) }
        if let scalar = number(after: "\\x", digits: 2).flatMap(Unicode.Scalar.init) { return (4, Self.utf8(scalar)) }
        if let byte = number(after: "\\", digits: 3, radix: 8), byte <= 0xFF { return (4, [UInt8(byte)]) }
        guard let unit = number(after: "\\u", digits: 4) else { return nil }
        if let scalar = Unicode.Scalar(unit) { return (6, Self.utf8(scalar)) }
        // The second half of a pair of surrogates.
        guard let high = number(after: "\\u", digits: 4, before: 6), 0xD800..<0xDC00 ~= high, unit >= 0xDC00 else { return nil }
        return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (unit - 0xDC00)).map { (12, Self.utf8($0)) }
    }

    /// The escape in braces that ends here.
    private var bracedCodePoint: (length: Int, unescaped: [UInt8])? {
        guard let brace = bytes.suffix(12).lastIndex(of: UInt8(ascii: "{")), brace >= 2 else { return nil }
        let start = bytes[(brace - 2)...]
        guard start.starts(with: "\\u".utf8) || start.starts(with: "\\x".utf8) else { return nil }
        return Self.number(bytes[(brace + 1)..<(bytes.count - 1)], radix: 16).flatMap(Unicode.Scalar.init)
            .map { (start.count, Self.utf8($0)) }
    }

    /// The HTML character reference that ends here with a semicolon.
    private var entity: (length: Int, unescaped: [UInt8])? {
        guard let start = bytes.suffix(12).lastIndex(of: UInt8(ascii: "&")) else { return nil }
        let name = bytes[(start + 1)..<(bytes.count - 1)]
        let length = bytes.count - start
        guard name.first == UInt8(ascii: "#") else {
            return Self.names[String(decoding: name, as: UTF8.self)].map { (length, [$0]) }
        }
        let digits = name.dropFirst()
        let isHex = digits.first == UInt8(ascii: "x") || digits.first == UInt8(ascii: "X")
        return Self.number(isHex ? digits.dropFirst() : digits, radix: isHex ? 16 : 10).flatMap(Unicode.Scalar.init)
            .map { (length, Self.utf8($0)) }
    }

    /// HTML's names, in lower case, of the printable ASCII characters that are neither letters nor digits.
    private static let names: [String: UInt8] = {
        let names =
            "amp lt gt quot apos excl num dollar percnt lpar rpar ast plus comma period sol colon semi equals quest commat lsqb "
            + "lbrack bsol rsqb rbrack lowbar grave lcub lbrace verbar vert rcub rbrace nbsp tab newline"
        let characters = "&<>\"'!#$%()*+,./:;=?@[[\\]]_`{{||}}   "
        return Dictionary(
            zip(names.split(separator: " ").map(String.init), characters.utf8), uniquingKeysWith: { first, _ in first })
    }()

    /// Returns the number after a prefix, if both are at the end, or `rest` bytes before the end.
    private func number(after prefix: String, digits: Int, radix: Int = 16, before rest: Int = 0) -> UInt32? {
        let end = bytes.count - rest
        let start = end - digits - prefix.utf8.count
        guard start >= 0, bytes[start...].starts(with: prefix.utf8) else { return nil }
        return Self.number(bytes[(end - digits)..<end], radix: radix)
    }

    private static func number(_ digits: ArraySlice<UInt8>, radix: Int) -> UInt32? {
        digits.allSatisfy(\.isHexDigit) ? UInt32(String(decoding: digits, as: UTF8.self), radix: radix) : nil
    }

    private static func utf8(_ scalar: Unicode.Scalar) -> [UInt8] { Array(String(Character(scalar)).utf8) }

    private func folded(_ byte: UInt8) -> UInt8? {
        guard isFolded else { return byte }
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), 0...0x20, 0x7F: return nil
        case UInt8(ascii: "_"): return UInt8(ascii: "/")
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): return byte + 0x20
        default: return byte
        }
    }
}
