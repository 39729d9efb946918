/// What the callers got.
struct Tally: Sendable {
    /// How many callers have had a token.
    private(set) var served = 0
    private(set) var answers = 0
    var failures = 0
    /// The longest time until a caller had an answer that was not its first; `nil`: there was none.
    private(set) var longestWait: Duration?

    mutating func answered(after wait: Duration, isFirst: Bool) {
        answers += 1
        if isFirst { served += 1 } else { longestWait = max(longestWait ?? .zero, wait) }
    }
}

/// What the real mode found out.
struct RealSummary: Encodable, CustomStringConvertible {
    let seconds: Double
    let loads: Int
    let failedLoads: Int
    let tokens: Int
    let expiries: Int
    let callers: Int
    let served: Int
    let answers: Int
    let failures: Int
    let longestWaitMicroseconds: Double?
    /// Why the run ended without a token; `nil` if all was well.
    let error: String?

    init(elapsed: Duration, watch: Watch, callers: Int, _ tally: Tally) {
        seconds = Double(elapsed.nanoseconds / 1_000_000) / 1000
        loads = watch.loads
        failedLoads = watch.failedLoads
        tokens = watch.tokens
        expiries = max(watch.tokens - 1, 0)
        self.callers = callers
        served = tally.served
        answers = tally.answers
        failures = tally.failures
        longestWaitMicroseconds = tally.longestWait.map { $0 / .microseconds(1) }
        let hasAnswer = watch.tokens > 0 || watch.failedLoads > 0
        error = hasAnswer ? watch.error : "The authorization server did not answer within \(elapsed.short)."
    }

    var description: String {
        """
        \(served) of \(counted(callers, "caller")) served with \(counted(loads, "load")) (\(failedLoads) failed) in \(seconds) s; \
        \(expiries == 0 ? "no token was replaced" : "the token was replaced \(counted(expiries, "time"))"). Callers got \
        \(counted(answers, "answer")) and \(counted(failures, "error")). After its first token no caller waited longer than \
        \(longestWaitMicroseconds.map { Duration.microseconds($0).short } ?? "–") for the next.
        """.wrapped(indent: 0)
    }
}
