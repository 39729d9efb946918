extension [String: String] {
    /// Returns the value of the header of that name, compared without case (RFC 9110 §5.1).
    ///
    /// The values of names that differ in case are joined by commas, as those of one name are (§5.2), in any order.
    package func header(_ name: String) -> String? {
        let name = name.lowercased()
        var found: String?
        for (key, value) in self where key.lowercased() == name { found = found.map { "\($0), \(value)" } ?? value }
        return found
    }
}
