import TokenServiceConcurrency
import AccessTokensHTTP

/// The parameters of a request to an authorization server, in order; each may be secret.
///
/// ```swift
/// var form: Form = ["resource": "https://api.example", "resource": "https://files.example"]
/// form.add("password", secret: password)
/// ```
///
/// A name may be repeated only where a specification allows it: `resource` (RFC 8707 §2) and `audience` (RFC 8693 §2.1). No
/// error, description or dump shows a secret value, however a server spells it. A parameter known to be secret, such as
/// `assertion` or `code_verifier`, is treated as one however it is added.
///
/// Source: RFC 6749 §3.2.
public struct Form: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    struct Parameter: Sendable, Hashable {
        let name: String
        let value: String
        let isSecret: Bool

        init(_ name: String, _ value: String, isSecret: Bool) {
            self.name = name
            self.value = value
            self.isSecret = isSecret || ParameterNames.secret.contains(name)
        }
    }

    private(set) var parameters: [Parameter] = []

    /// Creates a form of parameters that aren't secret, in their order; a name may repeat.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    /// Adds a parameter that may be shown, after the others.
    public mutating func add(_ name: String, _ value: String) {
        parameters.append(Parameter(name, value, isSecret: false))
    }

    /// Adds a parameter that no text may show, after the others.
    public mutating func add(_ name: String, secret value: String) {
        parameters.append(Parameter(name, value, isSecret: true))
    }

    /// Adds the parameters of another form, after the others.
    public mutating func add(_ form: Form) {
        parameters += form.parameters
    }

    /// Removes all parameters of a name, so that another value can be added.
    package mutating func remove(_ name: String) {
        parameters.removeAll { $0.name == name }
    }

    /// The first value of a name.
    subscript(name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// Adds a parameter unless it has no value.
    mutating func add(_ name: String, ifAny value: String?) {
        if let value, !value.isEmpty { add(name, value) }
    }

    /// Texts that must not be shown: each whole secret, and the revealing parts of a signed token.
    var secrets: [String] { parameters.filter(\.isSecret).flatMap { Self.secrets(of: $0.value) } }

    static func secrets(of value: String) -> [String] {
        let parts = value.split(separator: ".", omittingEmptySubsequences: false)
        return [value] + (parts.count == 3 ? parts.dropFirst().filter { $0.utf8.count >= 16 }.map(String.init) : [])
    }
}

extension Form: Redacted {
    /// How many parameters there are; no names and no values.
    package var text: String { "Form(\(parameters.count) parameters)" }
}

/// Parameters with a defined meaning.
///
/// Source: IANA registry "OAuth Parameters", those of the token, revocation and introspection requests.
enum ParameterNames {
    static let secret: Set<String> = [
        "client_secret", "client_assertion", "assertion", "password", "refresh_token", "code", "code_verifier", "device_code",
        "subject_token", "actor_token", "token",
    ]

    /// Those of a client's authentication, and the grant's type: never a part of another form.
    static let ofClient: Set<String> = ["grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type"]

    /// Parameters of a grant or of a client's authentication, which can't be additional parameters of a loader.
    static let reserved: Set<String> = secret.union(ofClient).union(["scope", "username", "redirect_uri", "token_type_hint"])

    /// Source: RFC 8707 §2; RFC 8693 §2.1.
    static let repeatable: Set<String> = ["resource", "audience"]
}

/// The encoding `application/x-www-form-urlencoded` of UTF-8 text.
///
/// Source: RFC 6749 App. B.
enum FormEncoding {
    /// Returns the parameters as one form, in their order.
    static func form(_ parameters: [(name: String, value: String)]) -> String {
        parameters.map { "\(encode($0.name))=\(encode($0.value))" }.joined(separator: "&")
    }

    /// Returns the text with a plus for each space and `%XX` for each byte that is not a letter, a digit or one of `*-._`.
    static func encode(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case _ where byte.isAlphanumeric || "*-._".utf8.contains(byte): bytes.append(byte)
            case UInt8(ascii: " "): bytes.append(UInt8(ascii: "+"))
            default: bytes += "%\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".utf8
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Decodes the text; anything that isn't an escape stays as it is.
    static func decode(_ text: Substring) -> String { String(decoding: decoded(Array(text.utf8)), as: UTF8.self) }

    private static func decoded(_ text: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.prefix(2).count == 2, rest.prefix(2).allSatisfy(\.isHexDigit),
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        return bytes
    }

    /// Returns the parameters that can be read in a text, and whether the text is a form and nothing else.
    ///
    /// A form has none of the characters that pages and JSON consist of, although servers forget to encode others. A parameter
    /// whose bytes aren't UTF-8 is left out.
    static func members(in text: [UInt8]) -> (members: [JSONScanner.Member], isForm: Bool, isUTF8: Bool) {
        var members: [JSONScanner.Member] = [], isForm = true, isUTF8 = true
        for pair in text.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false).map(Array.init)
            let isPair =
                parts.count == 2 && parts[0].contains(where: \.isAlphanumeric)
                && parts[0].allSatisfy { $0.isAlphanumeric || "_-.%[]".utf8.contains($0) }
                && parts[1].allSatisfy { $0 >= 0x20 && $0 != 0x7F && !"\"<>{}\\".utf8.contains($0) }
            guard isPair else {
                isForm = false
                continue
            }
            let texts = parts.compactMap { String(validating: decoded($0), as: UTF8.self) }
            if texts.count == 2 {
                members.append(JSONScanner.Member(name: texts[0], value: .string(texts[1])))
            } else {
                isUTF8 = false
            }
        }
        return (members, isForm && !(members.isEmpty && isUTF8), isUTF8)
    }
}
