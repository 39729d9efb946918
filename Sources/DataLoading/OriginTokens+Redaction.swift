public import TokenServiceConcurrency

/// What bound tokens say of themselves: where they go, not what they are.
extension OriginTokens: Redacted {
    /// The origins that get tokens.
    public var description: String {
        "OriginTokens(for \(bindings.keys.map { "\($0)" }.sorted().joined(separator: ", ")))"
    }
}
