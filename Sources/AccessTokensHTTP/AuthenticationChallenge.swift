import TokenServiceConcurrency

/// One challenge of a `WWW-Authenticate` header: how to authenticate a request, and why the server refused it.
///
/// Source: RFC 9110 §11.6.1; RFC 6750 §3 for Bearer challenges.
public struct AuthenticationChallenge: Sendable, Hashable {
    /// The scheme's name as the server wrote it.
    package let scheme: String

    /// The one value that some schemes have instead of parameters, such as the data of `Negotiate`.
    package let token68: String?

    /// The parameters by their names in lower case; a value may hold anything that the server wrote.
    package let parameters: [String: String]

    /// Creates a challenge from its parts.
    ///
    /// - Parameters:
    ///   - scheme: The scheme's name.
    ///   - token68: The one value that some schemes have instead of parameters.
    ///   - parameters: The parameters by name; of names that differ only in case, one is kept.
    package init(scheme: String, token68: String? = nil, parameters: [String: String] = [:]) {
        let named = parameters.sorted { $0.key < $1.key }.map { ($0.key.lowercased(), $0.value) }
        self.scheme = scheme
        self.token68 = token68
        self.parameters = Dictionary(named, uniquingKeysWith: { first, _ in first })
    }

    /// The value of a parameter, whose name is compared without case; `nil` if there is none (RFC 9110 §11.2).
    public subscript(parameter: String) -> String? { parameters[parameter.lowercased()] }

    /// Returns whether the challenge is of that scheme, compared without case (RFC 9110 §11.1).
    public func hasScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// Returns the challenges of a header's value, in their order.
    ///
    /// One header may hold several challenges. Several headers may be given joined by commas, as most HTTP clients return
    /// them. It never fails: a part that breaks the syntax is skipped to the next comma, a missing comma between two
    /// parameters is forgiven, the first of repeated parameters counts, and a quoted value without an end is dropped.
    ///
    /// - Parameter header: The header's value, or the values of several joined by commas.
    package static func challenges(in header: String) -> [AuthenticationChallenge] {
        var parser = ChallengeParser(header)
        return parser.challenges()
    }
}

extension AuthenticationChallenge: Redacted {
    /// The scheme and, if there is one, the error, made safe to print; no other value, since some schemes carry secrets.
    package var text: String {
        let error = self["error"].map { ", error \($0)" } ?? ""
        return "AuthenticationChallenge(\(ServerText.safe(scheme + error, hiding: [])))"
    }
}

/// Reads the challenges of a `WWW-Authenticate` header from left to right, in linear time.
///
///     challenge  = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param = token BWS "=" BWS ( token / quoted-string )
///
/// The comma separates challenges as well as parameters: the next part is a parameter if it continues with `=`, otherwise the
/// next challenge.
///
/// Source: RFC 9110 §11.2, §11.3, §11.6.1, §5.6 (tokens, quoted strings, lists).
struct ChallengeParser {
    private let bytes: [UInt8]
    private var index = 0

    init(_ header: String) {
        bytes = Array(header.utf8)
    }

    mutating func challenges() -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        var scheme: String?
        var parameters: [String: String] = [:]
        func current(_ token68: String? = nil) -> [AuthenticationChallenge] {
            scheme.map { [AuthenticationChallenge(scheme: $0, token68: token68, parameters: parameters)] } ?? []
        }
        while skip(while: { Self.isBlank($0) || $0 == UInt8(ascii: ",") }) {
            guard let name = text(while: HTTPToken.contains) else {
                skipPart()
                continue
            }
            let end = index
            _ = skip(while: Self.isBlank)
            if next == UInt8(ascii: "=") {
                index += 1
                _ = skip(while: Self.isBlank)
                guard let value = next == UInt8(ascii: "\"") ? quotedString() : text(while: HTTPToken.contains) else {
                    skipPart()
                    continue
                }
                let name = name.lowercased()
                if parameters[name] == nil { parameters[name] = value }
                continue
            }
            challenges += current()
            (scheme, parameters) = (name, [:])
            if end < index, let token68 = token68() {
                challenges += current(token68)
                scheme = nil
            }
        }
        return challenges + current()
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    /// Skips bytes; `false` at the end of the text.
    private mutating func skip(while condition: (UInt8) -> Bool) -> Bool {
        while let byte = next, condition(byte) { index += 1 }
        return index < bytes.count
    }

    /// Takes bytes, at least one.
    private mutating func text(while condition: (UInt8) -> Bool) -> String? {
        let start = index
        _ = skip(while: condition)
        return start < index ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    /// Takes a lone value up to the next comma; takes nothing and returns `nil` if there is none.
    private mutating func token68() -> String? {
        let start = index
        if let text = text(while: { $0.isAlphanumeric || "-._~+/".utf8.contains($0) }) {
            let padding = self.text { $0 == UInt8(ascii: "=") } ?? ""
            _ = skip(while: Self.isBlank)
            if next == nil || next == UInt8(ascii: ",") { return text + padding }
        }
        index = start
        return nil
    }

    /// Takes a quoted string, without its quotes and escapes; `nil` if it has no end.
    private mutating func quotedString() -> String? {
        index += 1
        var value: [UInt8] = []
        while let byte = next {
            index += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: value, as: UTF8.self) }
            if byte == UInt8(ascii: "\\"), let escaped = next {
                value.append(escaped)
                index += 1
            } else {
                value.append(byte)
            }
        }
        return nil
    }

    /// Skips an invalid part, up to the next comma outside quotes.
    private mutating func skipPart() {
        while let byte = next, byte != UInt8(ascii: ",") {
            if byte == UInt8(ascii: "\"") { _ = quotedString() } else { index += 1 }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
