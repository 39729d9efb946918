import Dispatch
import Foundation
import Interleavings
import Testing
import TokenServiceConcurrency

/// Correct code that awaits something outside, while the scenario settles and then requires something that isn't true yet.
@Suite struct `Correct code that escapes` {
    @Test(arguments: Outside.allCases, [false, true])
    func `is reported as an escape, not as a failure that the scenario found too early`(way: Outside, isSlow: Bool) async throws {
        let found = try await failure(.mixed()) { simulation in
            let fetches = Tally()
            let cache = SharedFetch(way) {
                if isSlow { Thread.sleep(forTimeInterval: 0.01) }
                fetches.next()
                return 42
            }
            let callers = ["Anna", "Ben"].map { name in simulation.spawn(name) { try await cache.get() } }
            try await simulation.settle()
            try simulation.require(fetches.value == 1, "one fetch for both")
            for caller in callers { _ = try await caller.value }
        }
        #expect(found.problem?.code == .escape, "\(found)")
        #expect("\(found)".contains("'Anna'") || "\(found)".contains("'Ben'"))
    }

    @Test(arguments: Outside.allCases)
    func `is reported as an escape if time moved on too early`(way: Outside) async throws {
        let found = try await failure(.mixed(schedules: 20)) { simulation in
            let fetches = Tally()
            let cache = SharedFetch(way) {
                Thread.sleep(forTimeInterval: 0.005)
                return fetches.next()
            }
            let caller = simulation.spawn("Anna") { try await cache.get() }
            try await simulation.clock.sleep(for: .seconds(60))
            try simulation.require(fetches.value == 1, "fetched within a minute")
            _ = try await caller.value
        }
        #expect(found.problem?.code == .escape, "\(found)")
    }

    @Test func `is not reported as a livelock`() async throws {
        let found = try await failure(.mixed(schedules: 20), stepLimit: 200) { simulation in
            let isDone = Tally()
            simulation.spawn("Anna") {
                try await Task.sleep(for: .milliseconds(20))
                isDone.next()
            }
            while isDone.value == 0 { try await simulation.settle(waitsForTimers: false) }
        }
        #expect(found.problem?.code == .escape, "\(found)")
        #expect("\(found)".contains("'Anna'"))
    }

    @Test func `gives way to a real failure if nothing comes from outside`() async throws {
        let found = try await failure(.mixed(schedules: 20)) { simulation in
            let gate = Gate()
            await gate.enter()
            simulation.spawn("Anna") { await gate.enter() }
            try await simulation.settle()
            throw Stop()
        }
        #expect(found.underlying is Stop)
        // Without 'Anna' it fails as well.
        #expect(!"\(found)".contains("though nothing could run"), "\(found)")
    }

    @Test func `is suspected only of a failure that depends on a task which hasn't ended`() async throws {
        let found = try await failure(.mixed(schedules: 20)) { simulation in
            let begun = Tally()
            simulation.spawn("Anna") {
                begun.next()
                await waitForEver()
            }
            simulation.spawn("Ben") { await waitForEver() }
            try await simulation.settle()
            try simulation.require(begun.value == 0, "'Anna' isn't done")
        }
        let text = "\(found)"
        #expect(text.contains("though nothing could run: 'Anna'"), "\(text)")
        #expect(text.contains(". If one of them awaits something slow outside"), "\(text)")
        #expect(!text.contains("run: 'Anna', 'Ben'") && !text.contains(", 'Ben' in"), "\(text)")
    }

    @Test func `doesn't delay a count of many deadlocks`() async throws {
        let start = ContinuousClock.now
        let summary = try await explore(.random(schedules: 2_000), countsFailures: true) { simulation in
            simulation.spawn("Anna") { await waitForEver() }
            try await simulation.settle()
        }
        #expect(summary.failures == 2_000)
        #expect(summary.firstFailure?.problem?.code == .deadlock)
        // Half a second for each schedule would be a thousand seconds on any machine; this one may be busy.
        #expect(ContinuousClock.now - start < .seconds(800))
    }
}

@Suite struct `Calls from outside` {
    enum Call: String, CaseIterable, CustomTestStringConvertible {
        case sleep, now, log, choose, require, spawn, settle, queue

        var testDescription: String { rawValue }

        var name: String {
            switch self {
            case .sleep, .now: "simulation.clock"
            case .queue: "VirtualQueue.async"
            case .log, .choose, .require, .spawn, .settle: "simulation.\(rawValue)"
            }
        }

        func make(_ simulation: Simulation, _ queue: VirtualQueue) async throws {
            switch self {
            case .sleep: try await simulation.clock.sleep(for: .seconds(1))
            case .now: _ = simulation.clock.now
            case .log: simulation.log("outside")
            case .choose: _ = simulation.choose("outside", 2)
            case .require: try simulation.require(true, "outside")
            case .spawn: simulation.spawn("outside") {}
            case .settle: try await simulation.settle()
            case .queue: queue.async {}
            }
        }
    }

    @Test(arguments: Call.allCases, [Granularity.jobs, .accesses])
    func `are escapes, and the report names the task that began them`(call: Call, granularity: Granularity) async throws {
        let found = try await failure(.mixed(schedules: 20), granularity: granularity) { simulation in
            let queue = simulation.serialQueue("queue")
            simulation.spawn("Anna") { try await Task { try await call.make(simulation, queue) }.value }
        }
        #expect(found.problem?.code == .escape)
        #expect(found.problem?.detail.contains("a task that 'Anna' began used \(call.name) ") == true, "\(found)")
    }

    @Test func `by a detached task are reported as such`() async throws {
        let found = try await failure(.mixed(schedules: 20)) { simulation in
            simulation.spawn("Anna") { await Task.detached { simulation.log("outside") }.value }
        }
        #expect(found.problem?.detail.contains("a detached task used simulation.log") == true, "\(found)")
        #expect(found.problem?.tasks.contains("Anna") == true)
    }

    @Test func `by a block are reported as such`() async throws {
        let found = try await failure(.mixed(schedules: 20)) { simulation in
            simulation.spawn("Anna") {
                await withCheckedContinuation { waiter in
                    DispatchQueue.global().async {
                        simulation.log("outside")
                        waiter.resume()
                    }
                }
            }
        }
        #expect(found.problem?.detail.contains("a DispatchQueue's block or a thread used simulation.log") == true, "\(found)")
    }
}

@Suite struct `Locks and semaphores used from outside` {
    @Test func `are escapes, because outside and controlled threads don't wait for each other`() async throws {
        let found = try await failure(.mixed(schedules: 20), granularity: .accesses) { simulation in
            let lock = InterleavedLock("lock")
            lock.withLock {}
            simulation.spawn("Anna") {
                await withCheckedContinuation { waiter in
                    DispatchQueue.global().async {
                        lock.withLock {}
                        waiter.resume()
                    }
                }
            }
        }
        #expect(found.problem?.code == .escape)
        #expect(found.problem?.detail.contains("used InterleavedLock") == true, "\(found)")
    }

    @Test func `are no deadlock if the signal comes from outside`() async throws {
        let found = try await failure(.mixed(schedules: 20), granularity: .accesses) { simulation in
            let semaphore = InterleavedSemaphore("semaphore")
            simulation.spawn("Anna") {
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { semaphore.signal() }
                semaphore.wait()
            }
        }
        #expect(found.problem?.code == .escape, "\(found)")
        #expect(found.problem?.detail.contains("used InterleavedSemaphore") == true, "\(found)")
    }
}

/// Something outside the explorer that a fetch may use.
enum Outside: String, CaseIterable, CustomTestStringConvertible {
    case sleep, task, detached, queue, thread

    var testDescription: String { rawValue }

    func run(_ work: @escaping @Sendable () -> Int) async throws -> Int {
        switch self {
        case .sleep:
            try await Task.sleep(for: .milliseconds(1))
            return work()
        case .task: return await Task { work() }.value
        case .detached: return await Task.detached { work() }.value
        case .queue:
            return await withCheckedContinuation { waiter in DispatchQueue.global().async { waiter.resume(returning: work()) } }
        case .thread:
            return await withCheckedContinuation { waiter in Thread.detachNewThread { waiter.resume(returning: work()) } }
        }
    }
}

/// The tutorial's corrected cache, whose fetch runs outside; all callers await one fetch.
private actor SharedFetch {
    private var fetching: Task<Int, any Error>?
    private let way: Outside
    private let fetch: @Sendable () -> Int

    init(_ way: Outside, fetch: @escaping @Sendable () -> Int) {
        self.way = way
        self.fetch = fetch
    }

    func get() async throws -> Int {
        if let fetching { return try await fetching.value }
        let task = Task { [way, fetch] in try await way.run(fetch) }
        fetching = task
        return try await task.value
    }
}
