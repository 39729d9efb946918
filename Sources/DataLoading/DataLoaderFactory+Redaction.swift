import TokenServiceConcurrency

/// The description leaves out the session, which holds the requests in flight with their tokens.
extension DataLoaderFactory: Redacted {
    /// Which origins get tokens.
    package var text: String { "DataLoaderFactory(\(runner.tokens.map { "\($0)" } ?? "no tokens"))" }
}
