import Dispatch
import Foundation
import Interleavings
import Synchronization
import TestBudgets
import Testing
import UntouchedCode

@testable import InterleavingsEverything

@Suite struct `An exploration with everything driven` {
    @Test func `leaves 15,000 ordinary tasks beside it alone: their clocks, sleeps, actors and main actor are real`() async throws
    {
        let start = (clock: ContinuousClock.now, date: Date())
        let isDone = Mutex(false)
        async let exploring: Int = {
            var schedules = 0
            while !isDone.withLock({ $0 }) {
                schedules += try await explore(.random(schedules: 20), driving: .everything) { _ in
                    try await useEverything { _ in }
                }.schedules
            }
            return schedules
        }()
        let counter = OrdinaryCounter()
        for _ in 1...150 {
            await withTaskGroup(of: Void.self) { group in
                for number in 1...100 {
                    group.addTask { await Self.liveNormally(number, since: start, counter) }
                }
            }
        }
        isDone.withLock { $0 = true }
        #expect(await counter.count == 15_000)
        #expect(try await exploring > 0)
    }

    private static func liveNormally(
        _ number: Int, since start: (clock: ContinuousClock.Instant, date: Date), _ counter: OrdinaryCounter
    ) async {
        let before = ContinuousClock.now
        if number == 1 { try? await Task.sleep(for: .milliseconds(2)) }
        #expect(number > 1 || before.duration(to: .now) >= .milliseconds(2))
        await counter.add()
        await MainActor.run {
            MainActor.assertIsolated()
            dispatchPrecondition(condition: .onQueue(.main))
        }
        let isDriven = await Task.detached { await Task { DrivenSession.current != nil }.value }.value
        #expect(!isDriven)
        // Virtual time begins in the year 2000, and 100 s after the machine's start.
        #expect(abs(Date().timeIntervalSince(start.date) - (start.clock.duration(to: .now) / .seconds(1))) < 60)
        #expect(Date() >= start.date && ContinuousClock.now >= start.clock)
    }

    @Test func `never runs at the same time as another one, even while it waits in real time`() async throws {
        let runs = Notes()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...3 {
                group.addTask {
                    // A deadlock waits for outside events, and lets other explorations run meanwhile.
                    let summary = try await explore(.random(schedules: 2), driving: .everything, countsFailures: true) { _ in
                        runs.add("\(number)")
                        await Task.yield()
                        await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                    }
                    #expect(summary.failures == 2)
                }
            }
            try await group.waitForAll()
        }
        let changes = zip(runs.all, runs.all.dropFirst()).count { $0 != $1 }
        #expect(changes == 2, "each runs in one piece: \(runs.all)")
    }

    #if os(Linux) || os(macOS)
    @Test func `runs the same schedules in three processes with the same seed`() async throws {
        var digests: [String] = []
        for _ in 1...3 {
            let result = try await #require(processExitsWith: .success, observing: [\.standardOutputContent]) {
                print("digest \(try await Self.digest(seed: 7))")
            }
            let lines = String(decoding: result.standardOutputContent, as: UTF8.self).split(separator: "\n")
            digests.append(String(try #require(lines.first { $0.hasPrefix("digest ") })))
        }
        #expect(Set(digests).count == 1, "\(digests)")
        #expect(try await "digest \(Self.digest(seed: 8))" != digests[0])
    }

    @Test func `takes the same order from a dictionary in every process`() async throws {
        var orders: [String] = []
        for _ in 1...2 {
            let result = try await #require(processExitsWith: .success, observing: [\.standardOutputContent]) {
                print("order \(Set((1...20).map { "key \($0)" }).joined(separator: ","))")
            }
            let lines = String(decoding: result.standardOutputContent, as: UTF8.self).split(separator: "\n")
            orders.append(String(try #require(lines.first { $0.hasPrefix("order ") })))
        }
        #expect(orders[0] == orders[1])
    }

    #if os(Linux)
    @Test func `shows virtual time through the older functions of the C library, too`() async throws {
        try await explore(.random(schedules: 2), driving: .everything) { simulation in
            let start = Glibc.time(nil)
            try await Task.sleep(for: .seconds(5))
            var now = timeval()
            unsafe gettimeofday(&now, nil)
            var other = timespec()
            unsafe timespec_get(&other, TIME_UTC)
            let seconds = [start + 5, now.tv_sec, other.tv_sec]
            try simulation.require(seconds == Array(repeating: 946_684_805, count: 3), "\(seconds)")
        }
    }

    /// Other code takes a hook of the runtime as a sign that its own hook is installed.
    @Test func `leaves no hook in the runtime`() async throws {
        await #expect(processExitsWith: .success) {
            #expect(Self.hooks == [false, false])
            let seen = Notes()
            try await explore(.random(schedules: 3), driving: .everything) { _ in
                seen.add("\(Self.hooks)")
                await Task.yield()
            }
            #expect(Set(seen.all) == ["[true, true]"])
            #expect(Self.hooks == [false, false])
        }
    }

    /// Whether the hooks of the runtime are in place.
    private static var hooks: [Bool] {
        ["swift_task_getMainExecutor_hook", "swift_task_enqueueGlobal_hook"].map { (name: String) in
            unsafe dlsym(nil, name)?.load(as: UnsafeRawPointer?.self) != nil
        }
    }
    #endif

    /// A hash of what happened in each schedule, in which order and when.
    private static func digest(seed: UInt64) async throws -> UInt64 {
        let hash = Mutex(UInt64(0xcbf2_9ce4_8422_2325)), schedules = Int.everyday(20, thorough: 100)
        let summary = try await explore(.mixed(schedules: schedules, seed: seed), driving: .everything) { simulation in
            let run = ProgramRun()
            var generator = ProgramGenerator(seed: 3)
            async let program: Void = run.run(generator.program())
            async let other: Void = run.run([.group([[.main(1_000)], [.call(2_000, actor: 0, yields: 1)]])])
            try await useEverything { note in hash.withLock { hash in note.utf8.forEach { Self.mix(Int($0), into: &hash) } } }
            _ = await (program, other)
            hash.withLock { hash in
                run.order.forEach { Self.mix($0, into: &hash) }
                Self.mix(Int(simulation.clock.now.offset / .nanoseconds(1)), into: &hash)
            }
        }
        return hash.withLock { hash in
            Self.mix(summary.steps, into: &hash)
            return hash
        }
    }

    private static func mix(_ value: Int, into hash: inout UInt64) {
        hash = (hash ^ UInt64(truncatingIfNeeded: value)) &* 0x100_0000_01b3
    }

    @Test(.thorough) func `takes no more memory after very many schedules than after a few`() async throws {
        await #expect(processExitsWith: .success) {
            let schedules = 100_000
            let atTenth = Mutex(0), count = Mutex(0)
            try await explore(.random(schedules: schedules), driving: .everything) { _ in
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                if number == schedules / 10 { atTenth.withLock { $0 = Self.residentBytes } }
                let run = ProgramRun()
                await run.run([.group([[.main(1)], [.call(2, actor: 0, yields: 1)]]), .task([.yield(3)], meanwhile: [.main(4)])])
                try await Task.sleep(for: .seconds(1))
            }
            let growth = Self.residentBytes - atTenth.withLock { $0 }
            print("\(schedules) schedules: \(Self.residentBytes) bytes, \(growth) more than after a tenth")
            #expect(growth < 4_000_000)
        }
    }

    /// The process's resident memory; 0 on systems other than Linux.
    private static var residentBytes: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }
    #endif
}

private actor OrdinaryCounter {
    private(set) var count = 0

    func add() {
        assertIsolated()
        count += 1
    }
}
