import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokensHTTP

/// Secrets as servers, frameworks and proxies quote them: randomly nested spellings.
///
/// A case's argument is its seed. `SPELLING_SEED=42 swift test --filter SpellingTests` starts with that seed.
struct SpellingTests {
    static let seeds: [UInt64] = {
        let first = ProcessInfo.processInfo.environment["SPELLING_SEED"].flatMap(UInt64.init) ?? 1
        return (0..<UInt64.everyday(12, thorough: 400)).map { first + $0 }
    }()

    typealias Spelling = (name: String, spell: @Sendable (String, inout SplitMix64) -> String)

    /// Returns a spelling that escapes some or all characters, and always the one with which an escape begins.
    static func escaping(
        _ name: String, always: Bool = false, introducer: Unicode.Scalar? = nil,
        _ escape: @escaping @Sendable (Unicode.Scalar, inout SplitMix64) -> String
    ) -> Spelling {
        (
            name,
            { text, random in
                text.unicodeScalars.map { scalar in
                    always || scalar == introducer || Bool.random(using: &random) ? escape(scalar, &random) : String(scalar)
                }.joined()
            }
        )
    }

    static let escapes: [Spelling] = [
        escaping("percent, upper case", introducer: "%") { scalar, _ in
            scalar.utf8.map { String(format: "%%%02X", Int($0)) }.joined()
        },
        escaping("percent, lower case", introducer: "%") { scalar, _ in
            scalar.utf8.map { String(format: "%%%02x", Int($0)) }.joined()
        },
        escaping("form", always: true) { scalar, _ in
            if scalar == " " { return "+" }
            let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || "0123456789*-._".unicodeScalars.contains(scalar))
            return isPlain ? String(scalar) : scalar.utf8.map { String(format: "%%%02X", Int($0)) }.joined()
        },
        escaping("JSON, digits", introducer: "\\") { scalar, random in
            let format = Bool.random(using: &random) ? "\\u%04x" : "\\u%04X"
            return String(scalar).utf16.map { String(format: format, Int($0)) }.joined()
        },
        escaping("JSON, usual", always: true) { scalar, _ in "\"\\/".unicodeScalars.contains(scalar) ? "\\\(scalar)" : "\(scalar)"
        },
        escaping("JavaScript, digits", introducer: "\\") { scalar, _ in
            scalar.value < 256 ? String(format: "\\x%02x", Int(scalar.value)) : "\(scalar)"
        },
        escaping("code points in braces", introducer: "\\") { scalar, random in
            let format = ["\\u{%X}", "\\u{%06x}", "\\x{%x}"].randomElement(using: &random) ?? ""
            return String(format: format, Int(scalar.value))
        },
        escaping("octal digits", introducer: "\\") { scalar, _ in
            scalar.utf8.map { String(format: "\\%03o", Int($0)) }.joined()
        },
        escaping("HTML, decimal", introducer: "&") { scalar, _ in "&#\(scalar.value);" },
        escaping("HTML, hexadecimal", introducer: "&") { scalar, random in
            Bool.random(using: &random) ? "&#x\(String(scalar.value, radix: 16));" : String(format: "&#X%06X;", Int(scalar.value))
        },
        escaping("HTML, names", introducer: "&") { scalar, _ in names[scalar].map { "&\($0);" } ?? "\(scalar)" },
        escaping("capitals", always: true) { scalar, _ in
            scalar.isASCII ? scalar.properties.uppercaseMapping : "\(scalar)"
        },
    ]

    static let names: [Unicode.Scalar: String] = [
        "&": "amp", "<": "lt", ">": "gt", "\"": "quot", "'": "apos", "+": "plus", "/": "sol", "=": "equals", ":": "colon",
        "_": "lowbar", ".": "period", "%": "percnt", "\\": "bsol", ",": "comma", ";": "semi", "!": "excl", "#": "num",
        "$": "dollar", "(": "lpar", ")": "rpar", "*": "ast", "?": "quest", "@": "commat", "|": "verbar", "{": "lbrace",
        "]": "rsqb",
    ]

    /// Spellings that can only come first, since they change all letters.
    static let base64: [Spelling] = [
        ("Base64", { text, _ in Data(text.utf8).base64EncodedString() }),
        ("Base64 without padding", { text, _ in Data(text.utf8).base64EncodedString().replacing("=", with: "") }),
        (
            "Base64 for URLs",
            { text, _ in
                Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
            }
        ),
    ]

    /// Spellings that can only come last.
    static let wraps: [Spelling] = ["\r\n", "\n ", "\t", "\u{200B}", "\r\n\r\n"].map { wrap in
        (
            "wrapped",
            { text, random in
                let width = Int.random(in: 1...20, using: &random)
                return text.enumerated().map { $0 > 0 && $0 % width == 0 ? wrap + String($1) : String($1) }.joined()
            }
        )
    }

    static func secret(_ random: inout SplitMix64) -> String {
        let plain = Array("abcxyzABCXYZ0123456789-._~")
        // No backslash: in a secret it would look like an escape.
        let odd = Array("+/=:&\"'<>%; #$()*?@|{],! üß漢😀")
        return String(
            (0..<Int.random(in: 8...40, using: &random)).map { _ in
                (Int.random(in: 0..<4, using: &random) == 0 ? odd : plain).randomElement(using: &random) ?? "a"
            })
    }

    @Test(arguments: [
        #"\u{54}\u{6f}p%2d\u{0053}\u{000065}cret\u{1F600}"#, #"\124\157p-Secret\360\237\230\200"#, #"\x{54}op-\x{53}ecret😀"#,
        #"\\u\u007b54}op-\\123ecret😀"#,
    ])
    func `18: a secret is hidden even if written as code points in braces or octal digits`(echo: String) {
        #expect(ServerText.safe("wrong: (\(echo))", hiding: ["Top-Secret😀"]) == "wrong: ([hidden])")
    }

    @Test(arguments: [#"\u{}"#, #"\u{110000}"#, #"\u{D800}"#, #"\u{54"#, #"u{54}"#, #"\777"#, #"\19"#])
    func `text that isn't a valid escape stays as it is`(text: String) {
        #expect(Unescaped(text.utf8, isFolded: false).bytes == Array(text.utf8))
    }

    @Test func `two escaped backslashes are not unescaped in every possible order`() {
        // `SECURITY.md` names it.
        #expect(Unescaped(#"\134\165{4b}"#.utf8).bytes == Array("k".utf8))
        #expect(Unescaped(#"\%3134%5C165{4b}"#.utf8).bytes != Array("k".utf8))
    }

    @Test(arguments: seeds)
    func `18: a secret is hidden in every composition of spellings`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 1...50 {
            let secret = Self.secret(&random)
            var spellings: [Spelling] = []
            if Bool.random(using: &random), let first = Self.base64.randomElement(using: &random) { spellings.append(first) }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                // Base64 is case-sensitive.
                let escapes = spellings.isEmpty ? Self.escapes[...] : Self.escapes.dropLast()
                if let next = escapes.randomElement(using: &random) { spellings.append(next) }
            }
            if Bool.random(using: &random), let last = Self.wraps.randomElement(using: &random) { spellings.append(last) }
            let echo = spellings.reduce(secret) { $1.spell($0, &random) }
            let shown = ServerText.safe("wrong: (\(echo)) was sent", hiding: [secret])
            // A space, a plus, a minus or a backslash at an edge may remain.
            let rest = shown.replacing("[hidden]", with: "", maxReplacements: 1).replacing("wrong: (", with: "")
            #expect(
                shown.contains("[hidden]") && Unescaped(rest.utf8).bytes == Array(")wassent".utf8),
                "\(secret.debugDescription) as \(spellings.map(\.name)): \(echo.debugDescription)")
        }
    }

    @Test(arguments: seeds.prefix(20))
    func `18: a secret inside a longer Base64 text is hidden, except at its edges`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let secret = String((0..<9).map { _ in "abcdefABCDEF0123456789-_".randomElement(using: &random) ?? "a" })
        for length in 0..<6 {
            let text = Data("\(String(repeating: "x", count: length))\(secret)&".utf8).base64EncodedString()
            let shown = ServerText.safe("sent: \(text)", hiding: [secret])
            let characters = Array(text)
            for start in (length * 8 + 5) / 6...((length + 9) * 8 / 6 - 4) {
                #expect(!shown.contains(String(characters[start..<start + 4])), "\(shown)")
            }
        }
    }
}
