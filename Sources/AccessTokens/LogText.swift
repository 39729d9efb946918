/// Foreign text as a part of one line of a log: nothing in it can begin another line, or another field.
enum LogText {
    /// The longest text that is shown.
    static let limit = 200

    /// Returns the text with everything but printable ASCII escaped, and cut if it is long.
    static func line(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars.prefix(limit) {
            let isPlain = (0x20...0x7E).contains(scalar.value) && scalar != "\\"
            line += isPlain ? String(scalar) : scalar.escaped(asASCII: true)
        }
        return text.unicodeScalars.count > limit ? line + "…" : line
    }

    /// Returns the text, in any language and length, with those characters escaped that could begin another line.
    static func sentence(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { sentence, scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: sentence += scalar.escaped(asASCII: true)
            default: sentence.unicodeScalars.append(scalar)
            }
        }
    }

    /// The same as ``line(_:)`` without spaces, as the value of a field.
    static func field(_ text: String) -> String {
        String(line(text).map { $0 == " " || $0 == "=" ? "_" : $0 })
    }
}

extension TokenServiceError {
    /// What a log says of the cause: its own name, or its type's; `nil`: there is none.
    var cause: String? {
        guard let underlying else { return nil }
        let code = (underlying as? any TokenLoadFailure)?.logCode
        return LogText.field(code ?? "\(type(of: underlying))")
    }
}

/// A loader returned a token without a string.
struct EmptyAccessToken: Error, CustomStringConvertible {
    let description = "The loader returned an access token that is the empty string, which no request can carry."
}
