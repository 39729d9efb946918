import AccessTokens
import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation

/// How many swaps a second the processes of one machine get out of one file, when they do nothing else.
struct SwapRate: Encodable, CustomStringConvertible {
    /// The first argument of a process that swaps; no option for people.
    static let flag = "--swap-for"
    private static let beginning = Data("race-lab swaps".utf8)
    /// About as long as a record with a mark.
    private static let bytes = beginning + Data(repeating: UInt8(ascii: "x"), count: 600)

    /// What one process counts.
    struct Count: Codable {
        var swaps = 0
        var conflicts = 0
        /// The longest time from one of its swaps to the next, in seconds.
        var longestWait = 0.0
    }

    let processes: Int
    let seconds: Int
    let swaps: Int
    let conflicts: Int
    let swapsPerSecond: Int
    let longestWait: Double
    let fewestSwaps: Int

    /// Lets processes swap for a while.
    static func measure(_ fleet: Options.Fleet) async throws -> SwapRate {
        guard case .file(let path) = fleet.place, let program = Bundle.main.executableURL else {
            throw UsageError("--swaps measures a file: give --store")
        }
        if let record = try await SharedFileTokenStore(path: path).load(), !record.bytes.starts(with: beginning) {
            throw UsageError("the file has a record: give --swaps a file of its own")
        }
        let counts: [Count] = try await withThrowingTaskGroup(of: Count.self) { group in
            for _ in 0..<fleet.processes {
                group.addTask { try await count(program, [flag, "\(fleet.seconds)", path]) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        return SwapRate(counts, seconds: fleet.seconds)
    }

    private init(_ counts: [Count], seconds: Int) {
        processes = counts.count
        self.seconds = seconds
        swaps = counts.reduce(0) { $0 + $1.swaps }
        conflicts = counts.reduce(0) { $0 + $1.conflicts }
        swapsPerSecond = swaps / seconds
        longestWait = counts.map(\.longestWait).max() ?? 0
        fewestSwaps = counts.map(\.swaps).min() ?? 0
    }

    private static func count(_ program: URL, _ arguments: [String]) async throws -> Count {
        try await withCheckedThrowingContinuation { continuation in
            // Reading waits, and the pool has few threads.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let process = Process(), output = Pipe()
                        process.executableURL = program
                        process.arguments = arguments
                        process.standardOutput = output
                        try process.run()
                        let data = output.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        return try JSONDecoder().decode(Count.self, from: data)
                    })
            }
        }
    }

    /// A process that swaps: arguments are the flag, the seconds and the file.
    static func work(_ arguments: [String]) async throws {
        guard arguments.count == 3, let seconds = Int(arguments[1]) else { throw UsageError("\(flag) is race-lab's own") }
        let store = SharedFileTokenStore(path: arguments[2]), clock = ContinuousClock()
        let end = clock.now + .seconds(seconds)
        var count = Count(), last = clock.now
        var revision = try await store.load()?.revision
        while clock.now < end {
            switch try await store.swap(bytes, ifAt: revision) {
            case .conflict(let record):
                revision = record?.revision
                count.conflicts += 1
            case .done(let next):
                revision = next
                count.swaps += 1
                let now = clock.now
                count.longestWait = max(count.longestWait, last.duration(to: now) / .seconds(1))
                last = now
            }
        }
        count.longestWait = max(count.longestWait, last.duration(to: clock.now) / .seconds(1))
        try Console.print(json: count)
    }

    var description: String {
        """
        \(counted(processes, "process", plural: "processes")), \(seconds) s: \(swapsPerSecond) swaps/s and \(conflicts / seconds) \
        conflicts/s in sum; the slowest process had \(counted(fewestSwaps, "swap")); the longest wait for a swap was \
        \(Duration.seconds(longestWait).short).
        """.wrapped(indent: 0)
    }
}
