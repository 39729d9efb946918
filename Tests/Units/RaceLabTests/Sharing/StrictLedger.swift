/// A strict authorization server's memory: which process presented which refresh token; a pure value.
///
/// A refresh token is good for one exchange. If presented again, it ends its session, as RFC 9700 §4.14.2 recommends.
struct StrictLedger {
    enum Answer: Equatable {
        /// The next token's number.
        case issued(Int)
        /// It was presented before, first by this process; the session ends.
        case reused(first: Int32)
        /// Its session has ended, or it is unknown.
        case refused
    }

    /// The number of the newest token.
    private(set) var newest = 0
    private(set) var rotations = 0
    /// The first token of the session, and whether that session has ended.
    private var first = 0
    private(set) var hasEnded = true
    /// Which process presented a token of the session first.
    private var presenters: [Int: Int32] = [:]

    /// Begins a session, as a user does by signing in; returns the number of its first token.
    mutating func signIn() -> Int {
        newest += 1
        (first, hasEnded, presenters) = (newest, false, [:])
        return newest
    }

    /// Decides an exchange.
    mutating func present(_ token: Int?, by process: Int32) -> Answer {
        guard let token, !hasEnded, (first...newest).contains(token) else { return .refused }
        if let presenter = presenters[token] {
            hasEnded = true
            return .reused(first: presenter)
        }
        presenters[token] = process
        newest += 1
        rotations += 1
        return .issued(newest)
    }
}
