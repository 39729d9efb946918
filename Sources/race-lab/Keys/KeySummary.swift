import TokenServiceConcurrency

/// What a run over many keys found out.
struct KeySummary: Encodable, Equatable, CustomStringConvertible {
    /// One visit of every key.
    struct Pass: Encodable, Equatable {
        let name: String
        let calls: Int
        let failures: Int
        let loads: Int
        let loadsPerKey: Double
        /// The keys that have lost their grant until the end of this pass.
        let grantsLost: Int
        let wrongKeyTokens: Int
        let mostServices: Int
        /// The program's resident memory at the end of this pass; `nil`: this system doesn't tell.
        let memoryMiB: Int?
        let seconds: Double
        let reason: String?
        let lifetime: Duration?

        private enum CodingKeys: CodingKey {
            case name, calls, failures, loads, loadsPerKey, grantsLost, wrongKeyTokens, mostServices, memoryMiB, seconds
        }

        init(
            name: String, keys: Int, counts: KeyTally.Counts, lostGrants: Int, elapsed: Duration,
            memoryMiB: Int? = ResidentMemory.mebibytes
        ) {
            self.name = name
            calls = counts.calls
            failures = counts.failures
            loads = counts.loads
            loadsPerKey = Double(counts.loads) / Double(keys)
            grantsLost = lostGrants
            wrongKeyTokens = counts.wrongTokens
            mostServices = counts.mostServices
            self.memoryMiB = memoryMiB
            seconds = Double(elapsed.nanoseconds / 1_000_000) / 1_000
            reason = counts.reason
            lifetime = counts.lifetime
        }

        fileprivate var row: [String] {
            [
                name, "\(calls)", "\(loads)", String(hundredthsOf: loadsPerKey), "\(grantsLost)", "\(wrongKeyTokens)",
                "\(mostServices)", memoryMiB.map { "\($0) MiB" } ?? "–",
            ]
        }
    }

    let keys: Int
    let idle: Int
    let callers: Int
    let calls: Int
    let failures: Int
    let loads: Int
    /// In the pass that had the most.
    let loadsPerKey: Double
    let grantsLost: Int
    let wrongKeyTokens: Int
    let mostServices: Int
    let memoryMiB: Int?
    let passes: [Pass]

    init(_ run: KeyRun, _ passes: [Pass]) {
        self.init(run.options, callers: run.callers, passes)
    }

    init(_ options: Options.Keys, callers: Int, _ passes: [Pass]) {
        keys = options.count
        idle = options.idle
        self.callers = callers
        self.passes = passes
        calls = passes.reduce(0) { $0 + $1.calls }
        failures = passes.reduce(0) { $0 + $1.failures }
        loads = passes.reduce(0) { $0 + $1.loads }
        loadsPerKey = passes.map(\.loadsPerKey).max() ?? 0
        grantsLost = passes.last?.grantsLost ?? 0
        wrongKeyTokens = passes.reduce(0) { $0 + $1.wrongKeyTokens }
        mostServices = passes.map(\.mostServices).max() ?? 0
        memoryMiB = passes.last?.memoryMiB
    }

    /// Why the run failed; `nil` if it succeeded.
    var error: String? {
        var problems: [String] = []
        if failures > 0 {
            let reason = passes.lazy.compactMap(\.reason).first.map { ", the first one because: \($0)" } ?? ""
            problems.append("\(failures) of \(counted(calls, "call")) failed\(reason)")
        }
        if grantsLost > 0 { problems.append("\(counted(grantsLost, "grant")) lost") }
        if wrongKeyTokens > 0 { problems.append("\(counted(wrongKeyTokens, "call")) got another key's token") }
        return problems.isEmpty ? nil : problems.joined(separator: "; ")
    }

    var description: String {
        let table = Table(
            headings: [
                [], ["calls"], ["loads"], ["loads", "per key"], ["grants", "lost"], ["wrong-key", "tokens"],
                ["most", "services", "at once"], ["memory", "at the", "end"],
            ],
            rows: passes.map(\.row))
        let notes = [
            "A service is counted from when it is made until it has ended. Besides the idle ones that are kept, there are those in use.",
            "Memory is the whole program's.",
        ]
        return (table.lines + ["", notes.joined(separator: " ").wrapped(indent: 0)]).joined(separator: "\n")
    }
}

extension String {
    /// A number with two digits after the point.
    init(hundredthsOf number: Double) {
        let hundredths = Int((number * 100).rounded())
        self = "\(hundredths / 100).\("\(100 + hundredths % 100)".dropFirst())"
    }
}
