import Dispatch
import Foundation
@testable import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite struct `Crashes` {
    /// Ways to end a process immediately.
    enum Crash: String, CaseIterable, Codable, CustomTestStringConvertible {
        case doubleResume, precondition, outOfRange, abort, segmentationFault, exclusivity

        /// The optimizer removes the check for overlapping accesses here.
        #if DEBUG
        static let all = allCases
        #else
        static let all = allCases.filter { $0 != .exclusivity }
        #endif

        var testDescription: String { rawValue }

        func go() async {
            switch self {
            case .doubleResume:
                await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
                    waiter.resume()
                    waiter.resume()
                }
            case .precondition: preconditionFailure("a broken promise")
            case .outOfRange: _ = [1][Int(getpid())]
            case .abort: Interleavings_abort()
            case .segmentationFault: unsafe UnsafeMutablePointer<Int>(bitPattern: 8)?.pointee = 1
            case .exclusivity: Overlap().begin()
            }
        }
    }

    #if compiler(>=6.3)  // exit tests that capture
    @Test(arguments: Crash.all, [Granularity.jobs, .accesses])
    func `print the line that replays them`(crash: Crash, granularity: Granularity) async throws {
        let isFine = granularity == .accesses
        let package = Self.newPackage()
        let first = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [crash = crash as Crash, isFine = isFine as Bool, package = package as String] in
            try await exploreUntil(.random(seed: 7), isFine: isFine, line: 1, of: package) { await crash.go() }
        }
        let report = String(decoding: first?.standardErrorContent ?? [], as: UTF8.self)
        #expect(report.contains("the process ended inside schedule "), "\(report)")
        #expect(report.contains("of the exploration at InterleavingsTests/CrashTests.swift:"))
        let schedule = try #require(replayed(in: report), "\(report)")
        #expect(report.contains("granularity: .accesses") == isFine)
        let second = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [crash = crash as Crash, isFine = isFine as Bool, schedule = schedule as String, package = package as String] in
            try await exploreUntil(.replay(schedule), isFine: isFine, line: 1, of: package) { await crash.go() }
        }
        let again = String(decoding: second?.standardErrorContent ?? [], as: UTF8.self)
        #expect(again.contains("ended inside schedule 1 of"), "\(again)")
        // Crashed in the same place, after the same choices, which were drawn first.
        #expect(replayed(in: again) == schedule)
        let picture = "the schedule in which an earlier run ended, up to that step.\nSchedule 1 (replay) stopped"
        #expect(again.contains(picture), "\(again)")
        #expect(again.contains("    'crasher' runs next, since step "), "\(again)")
        let origin = BlackBox.origin("InterleavingsTests/CrashTests.swift:1", Settings())
        #expect(BlackBoxFile.takeLeft(by: "another", of: package).isEmpty)
        #expect(BlackBoxFile.takeLeft(by: origin, of: package).map(\.text) == [nil])
    }
    #endif

    #if compiler(>=6.3)  // exit tests that capture
    @Test(arguments: [true, false])
    func `too sudden to print a line are reported and drawn by the next run of the package, once`(isKilled: Bool) async throws {
        let package = Self.newPackage()
        _ = await #expect(processExitsWith: .failure) { [package = package as String, isKilled = isKilled as Bool] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package) {
                if isKilled { kill(getpid(), SIGKILL) } else { exit(3) }
            }
        }
        let second = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [package = package as String] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package) {}
        }
        let report = String(decoding: second?.standardErrorContent ?? [], as: UTF8.self)
        #expect(report.contains("an earlier run ended inside schedule "))
        #expect(report.contains("    'crasher' runs next, since step "), "\(report)")
        let schedule = try #require(replayed(in: report))
        let third = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [package = package as String] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package) {}
        }
        #expect(third?.standardErrorContent.isEmpty == true)
        // The schedule reaches the point where the process ended; another exploration of the package tells that, too.
        _ = await #expect(processExitsWith: .exitCode(9)) { [package = package as String, schedule = schedule as String] in
            try await exploreUntil(.replay(schedule), line: 2, of: package) { exit(9) }
        }
        let left = BlackBoxFile.takeLeft(by: "", of: package)
        #expect(left.count == 1 && left.first?.text?.contains("CrashTests.swift:2.\n") == true)
    }

    // All explored tests make their explorations in one line of the trait.
    @Test func `in one of two whole tests are drawn by that test's next run, not by the other's`() async throws {
        let package = Self.newPackage(), picture = "the schedule in which an earlier run ended"
        let first = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [package = package as String] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package, at: "Suite/one()") { Interleavings_abort() }
        }
        let told = String(decoding: first?.standardErrorContent ?? [], as: UTF8.self)
        #expect(told.contains("of the exploration at Suite/one().\n"), "\(told)")
        let other = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [package = package as String] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package, at: "Suite/two()") {}
        }
        #expect(other?.standardErrorContent.isEmpty == true)
        let same = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            [package = package as String] in
            try await exploreUntil(.random(seed: 7), line: 1, of: package, at: "Suite/one()") {}
        }
        let drawn = String(decoding: same?.standardErrorContent ?? [], as: UTF8.self)
        #expect(drawn.contains(picture), "\(drawn)")
    }
    #endif

    @Test func `print the command that runs the test again, where it is known`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            var overrides = Overrides(time: .anytime)
            overrides.command = "swift test --filter '^Module\\.it'\\''s'"
            try await Overrides.$current.withValue(overrides) {
                try await exploreUntil(.random(seed: 7)) { Interleavings_abort() }
            }
        }
        let report = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let schedule = try #require(replayed(in: report), "\(report), \(String(describing: result?.exitStatus))")
        let variables = "INTERLEAVINGS_TIME=anytime INTERLEAVINGS_REPLAY='\(schedule)'"
        let line = "Or, without editing: \(variables) swift test --filter '^Module\\.it'\\''s'"
        #expect(report.split(separator: "\n").contains { $0 == line }, "\(report)")
    }

    @Test func `during generated operations print the program`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try await exploreOperations([0], programs: .replay("0|0"), schedules: .random(seed: 7)) { _ in
            } perform: { _, _, _ in
                preconditionFailure("a broken promise")
            } check: { _ in
            }
        }
        let report = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let line = "try await exploreOperations(…, programs: .replay(\"0|0\"), schedules: .replay(\""
        #expect(report.contains(line), "\(report)")
    }

    @Test func `outside an exploration don't run the explorer's handler, and earlier handlers return after it`() async {
        await #expect(processExitsWith: .success) {
            let before = handlers()
            let during = Lock<[Int]>([])
            try await explore(.replay("")) { _ in during.withLock { $0 = handlers() } }
            #expect(handlers() == before)
            #expect(zip(before, during.withLock { $0 }).allSatisfy { $0 != $1 })
        }
    }

    #if compiler(>=6.3)  // exit tests that capture
    @Test func `during several explorations print the one that crashed`() async throws {
        let package = Self.newPackage()
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [package = package as String] in
            let isReady = DispatchSemaphore(value: 0)
            let other = BlackBox("Other.swift:1", package: package)
            DispatchQueue.global().async {
                other.begin(1, seed: nil)
                isReady.signal()
            }
            isReady.wait()
            try await exploreUntil(.random(seed: 7), line: 1, of: package) { preconditionFailure("a broken promise") }
            other.close()
        }
        let report = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(report.contains("CrashTests.swift:1.\n"))
        #expect(!report.contains("Other.swift"))
        let origin = BlackBox.origin("InterleavingsTests/CrashTests.swift:1", Settings())
        #expect(BlackBoxFile.takeLeft(by: origin, of: package).count == 2)
    }
    #endif

    /// The name of a package that no other test's explorations have.
    private static func newPackage() -> String { "test\(UInt.random(in: 0 ... .max))" }

    private func replayed(in report: String) -> String? {
        guard let start = report.range(of: ".replay(\"")?.upperBound else { return nil }
        return report[start...].range(of: "\"").map { String(report[start..<$0.lowerBound]) }
    }
}

@Suite struct `Steps that do not end` {
    @Test func `are reported with the task and the schedule, at the granularity of jobs too`() async throws {
        let gate = DispatchSemaphore(value: 0)
        let failure = try await blockedFailure { simulation in
            simulation.spawn("other") { await Task.yield() }
            simulation.spawn("blocked") {
                await Task.yield()
                gate.wait()
            }
        }
        #expect(failure.problem?.code == .blockedThread)
        #expect(failure.problem?.tasks == ["blocked"])
        #expect("\(failure)".contains("0.5 seconds"))
        gate.signal()
    }

    #if os(Linux)
    @Test func `are not said to wait for a lock if they wait for input`() async throws {
        let pipe = Pipe()
        let failure = try await blockedFailure(granularity: .accesses) { simulation in
            simulation.spawn("reader") { read(from: pipe) }
        }
        #expect(failure.problem?.code == .blockedThread)
        #expect("\(failure)".contains("input or another call of the system, which is no lock"), "\(failure)")
        try pipe.fileHandleForWriting.close()
    }
    #endif

    @Test(.enabled(if: isThorough, "it computes for seconds: it runs in release builds, and with THOROUGH=1"))
    func `don't include a step that runs a long exploration itself`() async throws {
        let watchdog = Watchdog(Settings(stepSeconds: 0.5))
        let exploration = Exploration(settings: Settings(), countsFailures: false, watchdog: watchdog) { _ in
            let end = ContinuousClock.now + .seconds(2)
            while ContinuousClock.now < end {
                try await explore(.random(schedules: 50)) { inner in inner.spawn("a") { await Task.yield() } }
            }
        }
        _ = try await watchdog.run(on: OwnThread()) {
            var exploration = exploration
            return try exploration.run(.replay(""))
        }
    }

    private func blockedFailure(
        granularity: Granularity = .jobs, _ scenario: @escaping Scenario
    ) async throws -> ScheduleFailure {
        let settings = Settings(granularity: granularity, stepSeconds: 0.5)
        let watchdog = Watchdog(settings)
        let exploration = Exploration(
            settings: settings, countsFailures: false, watchdog: watchdog, scenario: scenario)
        let error = await #expect(throws: ScheduleFailure.self) {
            try await watchdog.run(on: OwnThread()) {
                var exploration = exploration
                return try exploration.run(.random())
            }
        }
        return try #require(error)
    }
}

/// Explores two tasks, one of which ends the process if it was overtaken twice.
private func exploreUntil(
    _ strategy: Strategy, isFine: Bool = false, line: UInt = #line, of package: String? = nil, at place: String? = nil,
    _ end: @escaping @Sendable () async -> Void
) async throws {
    var overrides = Overrides.current
    (overrides.package, overrides.place) = (package ?? overrides.package, place)
    try await Overrides.$current.withValue(overrides) {
        try await explore(
            strategy, granularity: isFine ? .accesses : .jobs,
            { simulation in
                let turns = Tally()
                simulation.spawn("worker") {
                    for _ in 1...4 {
                        turns.next()
                        interleavingPoint()
                        await Task.yield()
                    }
                }
                simulation.spawn("crasher") {
                    for turn in 1...3 {
                        if turn > 1, turns.value == 2 * turn - 2, simulation.choose("value", 12) == 11 { await end() }
                        interleavingPoint()
                        await Task.yield()
                    }
                }
            }, line: line)
    }
}

private func Interleavings_abort() { abort() }

private func read(from pipe: Pipe) { _ = pipe.fileHandleForReading.availableData }

/// An overlapping access.
private final class Overlap {
    private var value = 0

    func begin() { change(&value) }
    private func change(_ other: inout Int) {
        value += 1
        other += 1
    }
}

/// A thread that a task may block: the pool has only as many as the machine has processors.
final class OwnThread: TaskExecutor {
    private let queue = DispatchQueue(label: "own thread")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// The addresses of the current signal handlers.
private func handlers() -> [Int] {
    [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE].map { signal in
        var action = sigaction()
        unsafe sigaction(signal, nil, &action)
        return unsafe withUnsafeBytes(of: action) { unsafe $0.load(as: Int.self) }
    }
}
