/// An unusable argument: its name and what is expected, never its value, which may be a secret.
struct UsageError: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
