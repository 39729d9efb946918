/// The requests and waits of one design at the server.
struct RealFigures: Encodable, Sendable {
    let design: String
    let requests: Int
    let mostAtOnce: Int
    let expiries: Int
    let served: Int
    let answers: Int
    let failures: Int
    /// How long callers waited for tokens that were not their first.
    let medianWaitMicroseconds: Double?
    let p99WaitMicroseconds: Double?
    let longestWaitMicroseconds: Double?

    init(_ design: String, _ count: MeteredLoader.Count, _ tally: Tally) {
        self.design = design
        requests = count.requests
        mostAtOnce = count.mostAtOnce
        expiries = max(count.rounds - 1, 0)
        (served, answers, failures) = (tally.served, tally.answers, tally.failures)
        medianWaitMicroseconds = tally.wait(of: 0.5).map { $0 / .microseconds(1) }
        p99WaitMicroseconds = tally.wait(of: 0.99).map { $0 / .microseconds(1) }
        longestWaitMicroseconds = tally.longestWait.map { $0 / .microseconds(1) }
    }

    fileprivate static let headings = [
        [], ["expiries"], ["requests"], ["most", "at once"], ["p50", "wait"], ["p99", "wait"], ["longest", "wait"], ["errors"],
    ]
    fileprivate var row: [String] {
        let waits = [medianWaitMicroseconds, p99WaitMicroseconds, longestWaitMicroseconds].map {
            $0.map { Duration.microseconds($0).short } ?? "–"
        }
        return [design] + [expiries, requests, mostAtOnce].map(String.init) + waits + ["\(failures)"]
    }
}

/// The results of the real mode: for this package's service, and for others in comparison.
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
    /// This package's service, and then others on the same server.
    var designs: [RealFigures]

    init(elapsed: Duration, watch: Watch, callers: Int, _ ours: RealFigures) {
        seconds = Double(elapsed.nanoseconds / 1_000_000) / 1000
        loads = watch.loads
        failedLoads = watch.failedLoads
        tokens = watch.tokens
        expiries = max(watch.tokens - 1, 0)
        self.callers = callers
        (served, answers, failures) = (ours.served, ours.answers, ours.failures)
        longestWaitMicroseconds = ours.longestWaitMicroseconds
        designs = [ours]
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

    /// The designs in comparison.
    var comparison: String {
        let table = Table(headings: RealFigures.headings, rows: designs.map(\.row))
        let note =
            "Waits are those for tokens that weren't a caller's first: 50 and 99 of 100 calls waited no longer than p50 and p99."
        return (table.lines + [note.wrapped(indent: 0)]).joined(separator: "\n")
    }
}
