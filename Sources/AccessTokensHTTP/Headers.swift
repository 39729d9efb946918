extension [String: String] {
    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    package func header(_ name: String) -> String? {
        self[name] ?? first { $0.key.lowercased() == name.lowercased() }?.value
    }
}
