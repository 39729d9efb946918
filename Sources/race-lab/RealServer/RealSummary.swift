/// What the real mode found out.
struct RealSummary: Encodable, CustomStringConvertible {
    /// Callers of one kind and how long their answers took.
    struct Callers: Encodable {
        let callers: Int
        let served: Int
        let answers: Int
        let failures: Int
        let latencyMicroseconds: [String: Double]
        private let latencies: [Duration?]

        private enum CodingKeys: CodingKey {
            case callers, served, answers, failures, latencyMicroseconds
        }

        init(_ tally: Tally) {
            callers = tally.callers
            served = tally.served
            answers = tally.latencies.count
            failures = tally.failures
            latencies = [0.5, 0.9, 0.99, 1].map { tally.latencies.percentile($0) }
            latencyMicroseconds = zip(["p50", "p90", "p99", "max"], latencies).reduce(into: [:]) {
                $0[$1.0] = $1.1.map { Double($0.nanoseconds) / 1000 }
            }
        }

        func row(named name: String) -> [String] {
            [name, "\(callers)", "\(served)", "\(answers)", "\(failures)"] + latencies.map { $0?.short ?? "–" }
        }
    }

    let seconds: Double
    let loads: Int
    let failedLoads: Int
    let tokens: Int
    let expiries: Int
    let async: Callers
    let callbacks: Callers
    /// Why the run ended without a token, or without having saved it; `nil` if all was well.
    let error: String?

    init(elapsed: Duration, watch: Watch, asyncCallers: Tally, callbackCallers: Tally) {
        seconds = Double(elapsed.nanoseconds / 1_000_000) / 1000
        loads = watch.loads
        failedLoads = watch.failedLoads
        tokens = watch.tokens
        expiries = max(watch.tokens - 1, 0)
        async = Callers(asyncCallers)
        callbacks = Callers(callbackCallers)
        let unsaved = watch.unsaved.map { "The last token was not saved: \($0.reason)" }
        let hasAnswer = watch.tokens > 0 || watch.failedLoads > 0 || unsaved != nil
        error = hasAnswer ? watch.error ?? unsaved : "The authorization server did not answer within \(elapsed.short)."
    }

    var description: String {
        let table = Table(
            headings: [
                ["kind"], ["callers"], ["served"], ["answers"], ["failures"], ["p50"], ["p90"], ["p99"], ["max"],
            ],
            rows: [async.row(named: "async"), callbacks.row(named: "callbacks")])
        let total = """
            \(async.served + callbacks.served) of \(counted(async.callers + callbacks.callers, "caller")) served with \
            \(counted(loads, "load")) (\(failedLoads) failed) in \(seconds) s; \
            \(expiries == 0 ? "no token was replaced" : "the token was replaced \(counted(expiries, "time"))"). \
            Latencies include each caller's first answer, for which there was no token yet.
            """
        return (table.lines + ["", total.wrapped(indent: 0)]).joined(separator: "\n")
    }
}
