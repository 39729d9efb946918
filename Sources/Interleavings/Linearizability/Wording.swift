/// Values in one short line.
enum Wording {
    private static let limit = 60

    /// A value's description: of an optional its content, without line breaks, cut when it is long.
    static func of(_ value: some Any) -> String {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional, let content = mirror.children.first?.value { return of(content) }
        let words = String(describing: value).split(whereSeparator: \.isNewline).joined(separator: " ")
        return words.count > limit ? words.prefix(limit - 1) + "…" : words
    }
}
