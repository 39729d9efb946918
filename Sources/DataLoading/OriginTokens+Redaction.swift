import TokenServiceConcurrency

/// The description says where the tokens go and shows none of them.
extension OriginTokens: Redacted {
    /// The origins that get tokens.
    package var text: String {
        "OriginTokens(for \(bindings.keys.map { "\($0)" }.sorted().joined(separator: ", ")))"
    }
}
