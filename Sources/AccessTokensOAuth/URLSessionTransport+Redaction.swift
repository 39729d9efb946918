public import TokenServiceConcurrency

/// What a transport says of itself: never a session, which holds the requests in flight with the client's credentials.
extension URLSessionTransport: Redacted {
    /// The time limit.
    public var description: String { "URLSessionTransport(time limit \(timeLimit))" }
}
