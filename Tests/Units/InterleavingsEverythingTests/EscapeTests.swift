import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Testing
import TokenServiceConcurrency

#if canImport(Glibc)
import Glibc
#endif

@Suite struct `What gets past the doors` {
    @Test(arguments: WayOut.allCases, [false, true])
    func `is reported where it escapes, awaited or not, with its task and its function`(_ way: WayOut, isAwaited: Bool)
        async throws
    {
        let problem = try await problem { simulation in
            simulation.spawn("Anna") { await isAwaited ? way.goAndWait() : way.go {} }
        }
        #expect(problem.code == .escape)
        // The calls of Swift 6.2's functions for sources can't be followed, so these have no name.
        #if compiler(<6.3)
        guard way != .source else { return #expect(problem.detail.hasPrefix("'Anna' \(way.deed)"), "\(problem)") }
        #endif
        // The calls of a run loop's functions can be followed or not, as the program's code around them is compiled.
        guard way != .runLoopTimer else { return #expect(problem.detail.hasPrefix("'Anna' \(way.deed)"), "\(problem)") }
        #expect(problem.detail.hasPrefix("'Anna' \(way.deed), in "), "\(problem)")
        #if DEBUG
        // The optimizer turns a call at a function's end into a jump; then the caller is named.
        let function = way == .ownExecutor ? "QueuePool.enqueue(_:)" : "WayOut.go(then:)"
        let line = "\(function) at InterleavingsEverythingTests/EscapeTests.swift:"
        #expect(problem.detail.hasSuffix(function) || problem.detail.contains(line), "\(problem)")
        #endif
        #expect(problem.tasks.contains("Anna"))
    }

    @Test func `is reported where an actor's own executor puts its jobs into a queue`() async throws {
        let problem = try await problem { simulation in simulation.spawn("Anna") { await ActorOnQueue().visit() } }
        #expect(problem.code == .escape)
        #expect(problem.detail.hasPrefix("'Anna' put a block into a queue, which isn't driven, in "), "\(problem)")
        #expect("\(problem)".contains("'.everythingAndQueues'"), "\(problem)")
    }

    @Test func `is reported at the latest when it comes back, with the function that brings it`() async throws {
        let other = OtherThread()
        let problem = try await problem { simulation in
            simulation.spawn("Anna") { await withCheckedContinuation { waiter in other.run { waiter.resume() } } }
        }
        #expect(problem.code == .escape)
        #expect(problem.detail.hasPrefix("'Anna' was made runnable by a thread that the explorer does not drive"), "\(problem)")
        #if DEBUG
        // The optimizer may leave no function of the program on that thread's stack.
        #expect(problem.detail.contains(", in closure #1 in "), "\(problem)")
        #endif
    }

    @Test func `doesn't include a sleep of zero, as in Foundation's locks while another thread holds them`() async throws {
        try await explore(.random(schedules: 10), driving: .everything) { simulation in
            simulation.spawn("Anna") {
                _ = Glibc.sleep(0)
                usleep(0)
            }
        }
    }

    @Test func `is a deadlock if it never comes back, and its report says what isn't driven`() async throws {
        let problem = try await problem { simulation in
            simulation.spawn("Anna") {
                await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
        }
        #expect(problem.code == .deadlock)
        #expect("\(problem)".contains("timers and networks aren't"), "\(problem)")
        #expect(!"\(problem)".contains("simulation.clock"))
    }

    @Test func `cancels no task, whose handler could wait for the outside`() async throws {
        let cancellations = Notes()
        let problem = try await problem { simulation in
            simulation.spawn("Anna") {
                await withTaskCancellationHandler {
                    DispatchQueue.global().async {}
                    await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                } onCancel: {
                    cancellations.add("Anna")
                }
            }
        }
        #expect(problem.code == .escape)
        #expect(cancellations.all.isEmpty)
    }

    @Test func `runs within a step if it is a task of Swift's pool, even if other tasks hold all of the pool's threads`()
        async throws
    {
        await #expect(processExitsWith: .success) {
            let hasRun = try await Task(executorPreference: QueuePool()) { try await Self.hasRunBesideFullPool() }.value
            #expect(hasRun)
        }
    }

    private static func hasRunBesideFullPool() async throws -> Bool {
        let pool = globalConcurrentExecutor, runs = Notes(), isOver = DispatchSemaphore(value: 0)
        let places = ProcessInfo.processInfo.activeProcessorCount
        fill(places, until: isOver)
        defer { for _ in 0..<2 * places { isOver.signal() } }
        let summary = try await explore(.random(schedules: 1), driving: .everythingAndQueues, countsFailures: true) { _ in
            Task.detached(executorPreference: pool) { runs.add("run") }
            await Task.yield()
        }
        #expect((summary.firstFailure?.underlying as? ExplorationProblem)?.code == .escape)
        return !runs.all.isEmpty
    }

    /// Returns once tasks block all threads of the pool, and as many wait for one.
    private static func fill(_ places: Int, until isOver: DispatchSemaphore) {
        let hasBegun = DispatchSemaphore(value: 0)
        for _ in 0..<2 * places {
            Task.detached {
                hasBegun.signal()
                Self.wait(for: isOver)
            }
        }
        for _ in 0..<places { hasBegun.wait() }
    }

    private static func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

    /// Returns the problem of the first failing schedule.
    private func problem(_ scenario: @escaping @Sendable (Simulation) async throws -> Void) async throws -> ExplorationProblem {
        _ = (WayOut.realPool, WayOut.waker)
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 10), driving: .everything, scenario)
        }
        return try #require(failure?.underlying as? ExplorationProblem)
    }
}

/// Ways to leave the simulation.
enum WayOut: CaseIterable {
    case thread, socket, sleep, shortSleep, longSleep, clockSleep, pollSleep, selectSleep, condition, globalExecutor
    case queue, delayedQueue, group, notification, iterations, source, runLoopTimer, ownExecutor

    /// The real pool, looked up outside a simulation: inside, its name refers to the simulation's executor.
    static let realPool = globalConcurrentExecutor

    /// Ends long sleeps, by a signal that does nothing else.
    static let waker: OtherThread = {
        signal(SIGURG) { _ in }
        return OtherThread()
    }()

    /// The expected words of the report.
    var deed: String {
        switch self {
        case .thread: "started a thread"
        case .socket: "opened a network connection"
        case .sleep, .shortSleep, .longSleep, .clockSleep, .pollSleep, .selectSleep: "slept on its thread"
        case .condition: "waited for a condition with a time limit, which isn't driven"
        case .globalExecutor: "started a task on the global executor"
        case .source: "made a DispatchSource, which isn't driven"
        case .runLoopTimer: "set a Timer of a run loop, which isn't driven"
        default: "put a block into a queue, which isn't driven"
        }
    }

    func goAndWait() async {
        await withCheckedContinuation { waiter in go { waiter.resume() } }
    }

    /// Leaves the simulation, and calls `then` outside.
    func go(then end: @escaping @Sendable () -> Void) {
        switch self {
        case .thread: Thread.detachNewThread { end() }
        case .socket:
            _ = connect(-1, nil, 0)
            end()
        case .sleep:
            Thread.sleep(forTimeInterval: 0.001)
            end()
        case .shortSleep:
            usleep(10)
            end()
        case .longSleep:
            // The thread sleeps for whole seconds; only a signal ends that, which Dispatch's threads block.
            var signals = sigset_t()
            unsafe sigemptyset(&signals)
            unsafe sigaddset(&signals, SIGURG)
            unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            let sleeper = pthread_self()
            Self.waker.run { pthread_kill(sleeper, SIGURG) }
            _ = Glibc.sleep(1)
            end()
        case .clockSleep:
            var time = timespec(tv_sec: 0, tv_nsec: 1_000)
            unsafe clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
            end()
        case .pollSleep:
            _ = poll(nil, 0, 1)
            end()
        case .selectSleep:
            var time = timeval(tv_sec: 0, tv_usec: 10)
            unsafe select(0, nil, nil, nil, &time)
            end()
        case .condition:
            let condition = NSCondition()
            condition.lock()
            _ = condition.wait(until: Date() + 0.001)
            condition.unlock()
            end()
        case .globalExecutor: Task.detached(executorPreference: Self.realPool) { end() }
        case .queue: DispatchQueue.global().async { end() }
        case .delayedQueue: DispatchQueue.global().asyncAfter(deadline: .now() + 0.01) { end() }
        case .source:
            let source = DispatchSource.makeTimerSource(queue: .global())
            source.schedule(deadline: .now() + 0.01)
            source.setEventHandler {
                end()
                source.cancel()
            }
            source.activate()
        case .runLoopTimer:
            let timer = Timer(timeInterval: 3_600, repeats: false) { _ in }
            RunLoop.current.add(timer, forMode: .common)
            // A timer that stayed would hide a later one of this thread: a run loop is only set for its earliest.
            timer.invalidate()
            end()
        case .group: DispatchQueue.global().async(group: DispatchGroup()) { end() }
        case .notification: DispatchGroup().notify(queue: .global()) { end() }
        case .iterations: DispatchQueue.concurrentPerform(iterations: 1) { _ in end() }
        case .ownExecutor: Task(executorPreference: QueuePool()) { end() }
        }
    }
}

private final class QueuePool: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue.global().async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// A thread that exists before the simulation, and runs the work that it is given.
final class OtherThread: Sendable {
    private final class Line: Sendable {
        let isDue = DispatchSemaphore(value: 0)
        let body = Lock<(@Sendable () -> Void)?>(nil)

        func run() {
            while true {
                isDue.wait()
                guard let next = body.withLock({ body in body.take() }) else { return }
                // On a busy machine the task may take that long to suspend; a continuation that is resumed before that isn't an
                // escape.
                Thread.sleep(forTimeInterval: 0.05)
                next()
            }
        }
    }

    private let line = Line()

    init() {
        Thread.detachNewThread { [line] in line.run() }
    }

    deinit {
        // Without a body the thread ends.
        line.isDue.signal()
    }

    func run(_ body: @escaping @Sendable () -> Void) {
        line.body.withLock { $0 = body }
        line.isDue.signal()
    }
}

private actor ActorOnQueue {
    private let queue = SerialQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe queue.asUnownedSerialExecutor() }

    func visit() {}
}

private final class SerialQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "actor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
