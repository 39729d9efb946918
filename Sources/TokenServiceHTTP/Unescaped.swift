/// A text as it was before it was escaped, for comparing: percent-encoding and the escapes of HTML and JSON are undone, nested ones
/// too.
///
/// What forms and kinds of Base64 write differently is the same here: plus, minus and space, slash and underscore.
///
/// Source: RFC 3986 §2.1; RFC 8259 §7; RFC 4648 §5.
struct Unescaped {
    private(set) var bytes: [UInt8] = []
    /// Where in the text each byte began.
    private var starts: [Int] = []
    private let end: Int

    init(_ text: some Collection<UInt8>) {
        end = text.count
        for (index, byte) in text.enumerated() { append(byte, from: index) }
    }

    /// Returns the part of the text that a range of the bytes stands for.
    func source(of range: Range<Int>) -> Range<Int> {
        starts[range.lowerBound]..<(range.upperBound < starts.count ? starts[range.upperBound] : end)
    }

    /// Appends a byte and undoes the escapes that it completes: a loop, since a server chooses how deep they are nested.
    private mutating func append(_ byte: UInt8, from start: Int) {
        bytes.append(Self.folded(byte))
        starts.append(start)
        while let (length, unescaped) = escape {
            let start = starts[starts.count - length]
            bytes.removeLast(length)
            starts.removeLast(length)
            bytes += unescaped.map(Self.folded)
            starts += unescaped.map { _ in start }
        }
    }

    /// The escape at the end: its length, and the fewer bytes that it stands for.
    private var escape: (length: Int, unescaped: [UInt8])? {
        guard let last = bytes.last else { return nil }
        if last == UInt8(ascii: ";") { return entity }
        let before = bytes.count - 1
        if before >= 1, bytes[before - 1] == UInt8(ascii: "\\") {
            if #""\/'"#.utf8.contains(last) { return (2, [last]) }
            if "nrt".utf8.contains(last) { return (2, [UInt8(ascii: " ")]) }
        }
        guard Self.isHex(last) else { return nil }
        if before >= 2, bytes[before - 2] == UInt8(ascii: "%"), let byte = Self.number(bytes[(before - 1)...], radix: 16) {
            return (3, [UInt8(truncatingIfNeeded: byte)])
        }
        if before >= 5, bytes[before - 5] == UInt8(ascii: "\\"), bytes[before - 4] == UInt8(ascii: "u"),
            let scalar = Self.number(bytes[(before - 3)...], radix: 16).flatMap(Unicode.Scalar.init)
        {
            return (6, Array(String(Character(scalar)).utf8))
        }
        return nil
    }

    /// The escape of HTML that a semicolon ends.
    private var entity: (length: Int, unescaped: [UInt8])? {
        guard let start = bytes.suffix(10).lastIndex(of: UInt8(ascii: "&")) else { return nil }
        let name = bytes[(start + 1)..<(bytes.count - 1)]
        let length = bytes.count - start
        guard name.first == UInt8(ascii: "#") else {
            let names: [String: Unicode.Scalar] = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
            return names[String(decoding: name, as: UTF8.self)].map { (length, [UInt8(ascii: $0)]) }
        }
        let digits = name.dropFirst()
        let isHex = digits.first == UInt8(ascii: "x") || digits.first == UInt8(ascii: "X")
        return Self.number(isHex ? digits.dropFirst() : digits, radix: isHex ? 16 : 10).flatMap(Unicode.Scalar.init)
            .map { (length, Array(String(Character($0)).utf8)) }
    }

    private static func number(_ digits: ArraySlice<UInt8>, radix: Int) -> UInt32? {
        digits.allSatisfy(isHex) ? UInt32(String(decoding: digits, as: UTF8.self), radix: radix) : nil
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func folded(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), 0..<0x20, 0x7F: UInt8(ascii: " ")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: byte
        }
    }
}
