import AccessTokensHTTP

/// Reads a JSON object's members from left to right, once, without recursion deeper than ``deepest``.
///
/// It reports a syntax error, but continues after it, so that a later refresh token isn't lost. Like Foundation's decoder it
/// allows a comma after the last value; unlike it, it accepts `NaN` and `Infinity`, which some servers write as numbers.
///
/// Source: RFC 8259.
package struct JSONScanner {
    /// A value, in as much detail as an answer's members need.
    package enum Value: Sendable, Hashable {
        case string(String)
        /// A finite number.
        case number(Double)
        case bool(Bool)
        case null
        case list([Value])
        case object([Member])
        /// An invalid number, or a list or an object deeper than ``deepestKept``.
        case other

        /// The elements of a list that contains only strings.
        package var texts: [String]? {
            guard case .list(let values) = self else { return nil }
            let texts = values.compactMap(\.text)
            return texts.count == values.count ? texts : nil
        }

        var text: String? { if case .string(let text) = self { text } else { nil } }
    }

    /// A member of an object, or a parameter of a form.
    package struct Member: Sendable, Hashable {
        let name: String
        let value: Value
    }

    private static let deepest = 200

    /// How deep the values are that an answer is searched for; a body of deeper ones shall not cost their memory.
    private static let deepestKept = 4

    private let bytes: [UInt8]
    private var index = 0
    private var isJSON = true

    init(_ body: some Sequence<UInt8>) {
        bytes = Array(body)
    }

    /// Returns the object's own members in their order, and why the text isn't one JSON object; `nil` if it is.
    ///
    /// If something else than a page precedes the first object, its members are returned as well. What stands before and after
    /// the object is `outside`, without blanks and control characters around it.
    mutating func object() -> (members: [Member], outside: [UInt8], problem: String?) {
        // The text may begin with a byte order mark.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        skipBlanks()
        let start = index
        var problem: String?
        if !take("{") {
            let isPage = next == UInt8(ascii: "<")
            let isValue = value(depth: 0) != nil && isAtEnd
            problem = isValue && isJSON ? "it is not a JSON object" : "it is not JSON"
            guard !isPage, let brace = bytes.firstIndex(of: UInt8(ascii: "{")) else {
                return ([], isPage ? [] : trimmed(bytes[start...]), problem)
            }
            index = brace + 1
        }
        let before = bytes[start..<(index - 1)], members = members()
        problem = problem ?? (isJSON && isAtEnd ? nil : "it is not JSON")
        return (members, trimmed(before) + trimmed(bytes[min(index, bytes.count)...]), problem)
    }

    private func trimmed(_ text: ArraySlice<UInt8>) -> [UInt8] {
        let isBlank = { (byte: UInt8) in byte <= UInt8(ascii: " ") }
        return text.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
    }

    private mutating func members() -> [Member] {
        var members: [Member] = []
        while true {
            skipBlanks()
            if take("}") { return members }
            let start = index
            if let member = member() {
                members.append(member)
                skipBlanks()
                if take(",") { continue }
                if take("}") { return members }
            } else {
                index = start
            }
            isJSON = false
            // A comma is missing, or something else is wrong.
            if index > start, next == UInt8(ascii: "\"") { continue }
            skipMember()
            guard index < bytes.count else { return members }
            _ = take(",")
        }
    }

    private mutating func member(depth: Int = 1) -> Member? {
        guard next == UInt8(ascii: "\""), let name = string() else { return nil }
        skipBlanks()
        guard take(":"), let value = value(depth: depth) else { return nil }
        return Member(name: name, value: value)
    }

    /// Moves to the comma or the brace after a member that can't be read.
    private mutating func skipMember() {
        var depth = 0
        while let byte = next {
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0, byte == UInt8(ascii: "}") { return }
                depth = max(depth - 1, 0)
            case UInt8(ascii: ",") where depth == 0: return
            case UInt8(ascii: "\""): skipString()
            default: break
            }
            index += 1
        }
    }

    /// Moves to the quote that ends a string, or to the end of the text.
    private mutating func skipString() {
        index += 1
        while let byte = next, byte != UInt8(ascii: "\"") { index += byte == UInt8(ascii: "\\") ? 2 : 1 }
    }

    private mutating func value(depth: Int) -> Value? {
        skipBlanks()
        guard let next, depth < Self.deepest else { return nil }
        switch next {
        case UInt8(ascii: "\""): return string().map(Value.string)
        case UInt8(ascii: "{"): return composite(until: "}", depth: depth)
        case UInt8(ascii: "["): return composite(until: "]", depth: depth)
        default: return literal()
        }
    }

    /// Takes a list or an object after its first character.
    private mutating func composite(until end: Unicode.Scalar, depth: Int) -> Value? {
        index += 1
        var values: [Value] = [], members: [Member] = []
        while true {
            skipBlanks()
            if take(end) {
                guard depth < Self.deepestKept else { return .other }
                return end == "]" ? .list(values) : .object(members)
            }
            if end == "}" {
                guard let member = member(depth: depth + 1) else { return nil }
                if depth < Self.deepestKept { members.append(member) }
            } else {
                guard let value = value(depth: depth + 1) else { return nil }
                if depth < Self.deepestKept { values.append(value) }
            }
            skipBlanks()
            guard take(",") || next == UInt8(ascii: end) else { return nil }
        }
    }

    /// Takes a number or a word.
    private mutating func literal() -> Value? {
        let start = index
        while let byte = next, byte.isAlphanumeric || "+-.".utf8.contains(byte) { index += 1 }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        switch text {
        case "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "NaN", "Infinity", "-Infinity": return .other
        default: return Self.isNumber(bytes[start..<index]) ? Double(text).map { $0.isFinite ? .number($0) : .other } : nil
        }
    }

    /// Source: RFC 8259 §6.
    private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        var rest = text.first == UInt8(ascii: "-") ? text.dropFirst() : text
        func digits() -> Int {
            let count = rest.prefix(while: \.isDigit).count
            rest = rest.dropFirst(count)
            return count
        }
        let hasLeadingZero = rest.first == UInt8(ascii: "0")
        let whole = digits()
        guard whole == 1 || whole > 1 && !hasLeadingZero else { return false }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard digits() > 0 else { return false }
        }
        if let byte = rest.first, "eE".utf8.contains(byte) {
            rest = rest.dropFirst()
            if let sign = rest.first, "+-".utf8.contains(sign) { rest = rest.dropFirst() }
            guard digits() > 0 else { return false }
        }
        return rest.isEmpty
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private var isAtEnd: Bool { bytes[index...].allSatisfy { " \t\r\n".utf8.contains($0) } }

    private mutating func skipBlanks() {
        while let byte = next, " \t\r\n".utf8.contains(byte) { index += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        index += 1
        return true
    }
}

extension JSONScanner {
    /// Takes a string with its quotes; `nil` if it has no end, has an invalid escape, or isn't UTF-8.
    private mutating func string() -> String? {
        index += 1
        var text: [UInt8] = []
        while let byte = next {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = escaped() else { return nil }
                text += escaped
            default:
                if byte < 0x20 { isJSON = false }
                text.append(byte)
            }
        }
        return nil
    }

    /// Takes what follows a backslash.
    private mutating func escaped() -> [UInt8]? {
        guard let byte = next else { return nil }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"):
            guard let unit = hexadecimal() else { return nil }
            if let scalar = Unicode.Scalar(unit) { return Array(String(Character(scalar)).utf8) }
            guard unit < 0xDC00, take("\\"), take("u"), let low = hexadecimal(), 0xDC00...0xDFFF ~= low else { return nil }
            return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)).map { Array(String(Character($0)).utf8) }
        default: return nil
        }
    }

    private mutating func hexadecimal() -> UInt32? {
        let digits = bytes[index...].prefix(4)
        guard digits.count == 4, digits.allSatisfy(\.isHexDigit) else { return nil }
        index += 4
        return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
