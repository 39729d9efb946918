/// Why an exchange brought no answer.
package enum ExchangeFailure: Error {
    /// A time limit passed first: ours, or the session's own with its error.
    case timedOut(underlying: (any Error)? = nil)
    /// The body is longer than the exchange's limit.
    case tooLong
    /// The server could not be reached, or the connection ended before the answer did.
    case connection(detail: String, underlying: (any Error)? = nil)
}
