/// HTTP's `token`: the name of a method, a header, a scheme or a parameter.
///
/// Source: RFC 9110 §5.6.2.
package enum HTTPToken {
    /// Returns whether a text is such a name.
    package static func isValid(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(contains) }

    /// Returns whether such a name may contain a character.
    static func contains(_ byte: UInt8) -> Bool { byte.isAlphanumeric || "!#$%&'*+-.^_`|~".utf8.contains(byte) }
}
