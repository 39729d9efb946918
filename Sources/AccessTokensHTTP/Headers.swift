extension [String: String] {
    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    ///
    /// The values of names that differ in case are joined by commas, as those of one name are (§5.2).
    package func header(_ name: String) -> String? {
        let found = filter { $0.key.lowercased() == name.lowercased() }
        return found.isEmpty ? nil : found.sorted { $0.key < $1.key }.map(\.value).joined(separator: ", ")
    }
}
