import TokenServiceConcurrency

/// The description leaves out the session, which holds the requests in flight with their tokens.
///
/// On Linux reflecting a `URLSession` in flight also ends the process.
extension DataLoader: Redacted {
    /// How many requests are running.
    package var text: String { "DataLoader(\(running.count) under way)" }
}
