/// HTTP's `token`: the name of a method, a header, a scheme or a parameter.
///
/// Source: RFC 9110 §5.6.2.
package enum HTTPToken {
    /// Returns whether a text is such a name.
    package static func isValid(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(contains) }

    /// Returns whether a text is not empty and has only visible ASCII characters, as a token must (RFC 6750 §2.1).
    ///
    /// Read as a buffer: through the text's iterator, a token of 900 bytes took 27,000 instructions at each request.
    package static func isVisible(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { bytes in unsafe !bytes.isEmpty && bytes.allSatisfy { 0x21...0x7E ~= $0 } }
    }

    /// Returns whether a text can be a header's value: a line break would start another header.
    package static func isHeaderValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 0x09 || (0x20 <= $0 && $0 != 0x7F) }
    }

    /// Returns whether a header is the connection's own: it follows from the URL and the body, so no request may set it.
    ///
    /// With another length or encoding than the body has, the rest of it would be read as the next request; another host would
    /// get the token of this one.
    ///
    /// Sources: RFC 9112 §6.3 and §11.2, RFC 9110 §7.6.1.
    package static func isOfConnection(_ name: String) -> Bool { connectionHeaders.contains(name.lowercased()) }

    private static let connectionHeaders: Set = [
        "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Returns whether such a name may contain a character.
    static func contains(_ byte: UInt8) -> Bool { byte.isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte) }
}

extension UInt8 {
    package var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    package var isHexDigit: Bool { isDigit || UInt8(ascii: "a")...UInt8(ascii: "f") ~= self | 0x20 }
    package var isAlphanumeric: Bool { isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }
}
