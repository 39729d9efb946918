/// HTTP's `token`: the name of a method, a header, a scheme or a parameter.
///
/// Source: RFC 9110 §5.6.2.
package enum HTTPToken {
    /// Returns whether a text is such a name.
    package static func isValid(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(contains) }

    /// Returns whether such a name may contain a character.
    static func contains(_ byte: UInt8) -> Bool { byte.isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte) }
}

extension UInt8 {
    package var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    package var isHexDigit: Bool { isDigit || UInt8(ascii: "a")...UInt8(ascii: "f") ~= self | 0x20 }
    package var isAlphanumeric: Bool { isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }
}
