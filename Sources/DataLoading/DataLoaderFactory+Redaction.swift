import TokenServiceConcurrency

/// What a factory says of itself: not its session, which holds the requests in flight with their tokens.
extension DataLoaderFactory: Redacted {
    /// Which origins get tokens.
    package var text: String { "DataLoaderFactory(\(runner.tokens.map { "\($0)" } ?? "no tokens"))" }
}
