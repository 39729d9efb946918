import TokenServiceConcurrency

/// What bound tokens say of themselves: where they go, not what they are.
extension OriginTokens: Redacted {
    /// The origins that get tokens.
    package var text: String {
        "OriginTokens(for \(services.keys.map { "\($0)" }.sorted().joined(separator: ", ")))"
    }
}
