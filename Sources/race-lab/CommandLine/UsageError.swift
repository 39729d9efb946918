/// An argument that the lab cannot use: which one, and what is expected.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// What a person wrote, fit to be quoted in one line.
    static func quoted(_ text: some StringProtocol) -> String {
        let printable = text.unicodeScalars.lazy.filter { !$0.properties.isDefaultIgnorableCodePoint && $0.value >= 0x20 }
        let shown = String(String.UnicodeScalarView(printable.filter { !(0x7F...0x9F).contains($0.value) }))
        return "'\(shown.prefix(40))\(shown.count > 40 ? "…" : "")'"
    }
}
