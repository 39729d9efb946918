#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing

/// A bug that a public report describes, rebuilt in a small program, and the same program without it.
struct ReportedBug: Sendable, CustomTestStringConvertible {
    /// The repository and the number of the issue or the pull request, and what went wrong.
    let testDescription: String
    /// Begins the program, and returns what the sum is in the end.
    let begin: @Sendable (Simulation, _ sum: Held<Int>, _ isMended: Bool) -> Int

    init(_ report: String, _ begin: @escaping @Sendable (Simulation, Held<Int>, Bool) -> Int) {
        (testDescription, self.begin) = (report, begin)
    }

    func run(_ simulation: Simulation, isMended: Bool) async throws {
        let sum = Held(0)
        let expected = begin(simulation, sum, isMended)
        try await simulation.settle()
        try simulation.require(sum.now == expected, "\(sum.now) instead of \(expected)")
    }
}

@Suite struct `Bugs that others have reported` {
    @Test(arguments: ReportedBug.all) func `a bug that others have reported is found`(_ bug: ReportedBug) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.mixed(schedules: 300), granularity: .accesses, driving: .everythingAndQueues) {
                try await bug.run($0, isMended: false)
            }
        }
        let code = (failure?.underlying as? ExplorationProblem)?.code
        #expect(code == .deadlock || code == .requirement, "\(String(describing: failure))")
    }

    @Test(arguments: ReportedBug.all, [Granularity.jobs, .accesses])
    func `the same program without the bug passes and ends`(_ bug: ReportedBug, _ granularity: Granularity) async throws {
        try await explore(
            .mixed(schedules: .everyday(15, thorough: 150)), granularity: granularity, driving: .everythingAndQueues
        ) { try await bug.run($0, isMended: true) }
    }
}

extension ReportedBug {
    static let all = [
        ReportedBug("supabase/supabase-swift#1371: a refresh that ends after a sign-out stores its session") {
            simulation, sum, isMended in
            let session = StoredSession(checks: isMended)
            simulation.spawn("refreshes") { await session.refresh() }
            simulation.spawn("signs out") {
                await session.signOut()
                // Another user signs in later, to an empty store.
                while await session.isRefreshing { await Task.yield() }
                sum.add(await session.stored == nil ? 1 : 0)
            }
            return 1
        },
        ReportedBug("damus-io/damus#3571: a thread waits for a semaphore while it holds a lock") { simulation, sum, isMended in
            let (lock, access) = (NSLock(), DispatchSemaphore(value: 1))
            simulation.spawn("uses") {
                if isMended { access.wait() }
                lock.withLock {
                    if !isMended { access.wait() }
                    sum.add(1)
                }
                access.signal()
            }
            simulation.spawn("closes") {
                access.wait()
                lock.withLock { sum.add(1) }
                access.signal()
            }
            return 2
        },
        ReportedBug("livekit/client-sdk-swift#528: two threads resume one continuation") { simulation, sum, isMended in
            let isWaiting = Held(true), queue = DispatchQueue(label: "delegate"), resumed = Held(0)
            for name in ["message", "close"] {
                simulation.spawn(name) {
                    await withCheckedContinuation { done in
                        queue.asyncAfter(deadline: .now() + 1) { done.resume() }
                    }
                    // Each stands for a resumption, since a second one of a real continuation ends the process.
                    if isMended {
                        let isFirst = isWaiting.with { isWaiting in
                            defer { isWaiting = false }
                            return isWaiting
                        }
                        if isFirst { resumed.add(1) }
                    } else if isWaiting.now {
                        resumed.add(1)
                        isWaiting.with { $0 = false }
                    }
                    sum.with { $0 = max($0, resumed.now) }
                }
            }
            return 1
        },
        ReportedBug("repoprompt/repoprompt-ce#491: a cancelled waiter is admitted and starts a process") {
            simulation, sum, isMended in
            let gate = AdmissionGate(hearsCancellation: isMended)
            simulation.spawn("runs") {
                guard await gate.enter() else { return }
                await Task.yield()
                gate.leave()
            }
            simulation.spawn("is cancelled") {
                let request = Task {
                    // It waits until it is cancelled, so nothing may start.
                    while !Task.isCancelled { await Task.yield() }
                    guard await gate.enter() else { return }
                    sum.add(1)
                    gate.leave()
                }
                request.cancel()
                await request.value
            }
            return 0
        },
        ReportedBug("sideeffect-io/AsyncExtensions#8: a value is sent before the subscriber is registered") {
            simulation, sum, isMended in
            let subject = AsyncSubject()
            simulation.spawn("subscribes and sends") {
                let (stream, source) = AsyncStream.makeStream(of: Int.self)
                if isMended { await subject.register(source) } else { Task { await subject.register(source) } }
                await subject.send(7)
                // The end comes to all that have registered, sooner or later.
                while await subject.count == 0 { await Task.yield() }
                await subject.finish()
                for await value in stream { sum.add(value) }
            }
            return 7
        },
        ReportedBug("kean/Nuke#70: the image before is cancelled too late, and is shown in the reused cell") {
            simulation, sum, isMended in
            let shown = Held(0), isCancelled = Held(false), main = DispatchQueue(label: "main")
            simulation.spawn("loads the first") { main.async { if !isCancelled.now { shown.with { $0 = 1 } } } }
            simulation.spawn("reuses the cell") {
                let cancel: @Sendable () -> Void = { isCancelled.with { $0 = true } }
                main.sync {
                    if isMended { cancel() } else { main.async(execute: cancel) }
                    shown.with { $0 = 2 }
                }
                main.sync {}
                await withCheckedContinuation { done in main.asyncAfter(deadline: .now() + 1) { done.resume() } }
                sum.add(shown.now)
            }
            return 2
        },
        ReportedBug("dropbox/pilot#164: a throttle swallows a call that comes while it resets") { simulation, sum, isMended in
            let throttle = Throttle(isMended: isMended)
            simulation.spawn("calls") { throttle.call(1) }
            simulation.spawn("calls again") {
                try await Task.sleep(for: .seconds(1))
                throttle.call(2)
            }
            simulation.spawn("looks") {
                try await Task.sleep(for: .seconds(10))
                sum.add(throttle.latestDone == throttle.latestCalled ? 1 : 0)
            }
            return 1
        },
        ReportedBug("mangerlahn/Latest#597: a later change counts as the end of the first listing") { simulation, sum, isMended in
            let left = Held(2), listed = Held(Set<String>())
            for name in ["one", "other"] {
                simulation.spawn(name) {
                    let isFirst = listed.with { $0.insert(name).inserted }
                    for change in 1...(name == "one" ? 2 : 1) where !isMended || (isFirst && change == 1) {
                        let isReady = left.with { left in
                            left -= 1
                            return left == 0
                        }
                        if isReady { sum.add(listed.now.count) }
                    }
                }
            }
            return 2
        },
        ReportedBug("auth0/Auth0.swift#827: a second login replaces the first, whose caller waits forever") {
            simulation, sum, isMended in
            let logins = Logins(endsTheOther: isMended)
            for name in ["login", "second login"] {
                simulation.spawn(name) {
                    await logins.begin()
                    sum.add(1)
                }
            }
            simulation.spawn("browser") {
                for number in 1...2 {
                    while await logins.begun < number { await Task.yield() }
                    await logins.answer()
                }
            }
            return 2
        },
        ReportedBug("scribd/Weaver#29: the flag of a lazy value is set after its lock is freed") { simulation, sum, isMended in
            let lock = NSLock(), isSet = Held(false), queue = DispatchQueue(label: "flag")
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    lock.withLock {
                        if isSet.now { return }
                        sum.add(1)
                        let set: @Sendable () -> Void = { isSet.with { $0 = true } }
                        if isMended { queue.sync(execute: set) } else { queue.async(execute: set) }
                    }
                }
            }
            return 1
        },
        ReportedBug("swift-server/async-http-client#419: a back-off's timer connects after the shutdown") {
            simulation, sum, isMended in
            let state = Held((isShutDown: false, connections: 0)), queue = DispatchQueue(label: "loop")
            simulation.spawn("backs off") {
                await withCheckedContinuation { done in
                    queue.asyncAfter(deadline: .now() + 1) {
                        if !isMended || !state.now.isShutDown { state.with { $0.connections += 1 } }
                        done.resume()
                    }
                }
            }
            simulation.spawn("shuts down") {
                queue.sync { state.with { $0 = (true, 0) } }
                try await Task.sleep(for: .seconds(2))
                sum.add(state.now.connections)
            }
            return 0
        },
    ]
}

private actor StoredSession {
    private(set) var stored: Int? = 1
    private(set) var isRefreshing = false
    private let checks: Bool

    init(checks: Bool) {
        self.checks = checks
    }

    func refresh() async {
        guard let before = stored else { return }
        isRefreshing = true
        await Task.yield()
        if !checks || stored == before { stored = before + 1 }
        isRefreshing = false
    }

    func signOut() { stored = nil }
}

private final class AdmissionGate: Sendable {
    private let hearsCancellation: Bool
    private let state = Mutex((isFree: true, waiting: [CheckedContinuation<Void, Never>]()))

    init(hearsCancellation: Bool) {
        self.hearsCancellation = hearsCancellation
    }

    /// - Returns: Whether the caller may go on.
    func enter() async -> Bool {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if !state.isFree { state.waiting.append(continuation) }
                defer { state.isFree = false }
                return state.isFree
            }
            if isFree { continuation.resume() }
        }
        guard hearsCancellation, Task.isCancelled else { return true }
        leave()
        return false
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.waiting.isEmpty else {
                state.isFree = true
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}

private actor AsyncSubject {
    private var subscribers: [AsyncStream<Int>.Continuation] = []
    var count: Int { subscribers.count }

    func register(_ subscriber: AsyncStream<Int>.Continuation) { subscribers.append(subscriber) }

    func send(_ value: Int) {
        for subscriber in subscribers { subscriber.yield(value) }
    }

    func finish() {
        for subscriber in subscribers { subscriber.finish() }
    }
}

/// Does the first call at once, and the latest of the others a second later.
private final class Throttle: Sendable {
    private struct State: Sendable {
        var isClosed = false
        var pending: Int?
        var called = 0
        var done = 0
    }

    private let isMended: Bool
    private let state = Held(State())
    private let queue = DispatchQueue(label: "throttle")

    init(isMended: Bool) {
        self.isMended = isMended
    }

    var latestCalled: Int { state.now.called }
    var latestDone: Int { state.now.done }

    func call(_ number: Int) {
        let isFirst = state.with { state in
            state.called = number
            defer { state.isClosed = true }
            if state.isClosed { state.pending = number } else { state.done = number }
            return !state.isClosed
        }
        if isFirst { queue.asyncAfter(deadline: .now() + 1) { self.reopen() } }
    }

    private func reopen() {
        guard isMended else { return state.with { $0.isClosed = false } }
        state.with { state in
            if let pending = state.pending { state.done = pending }
            (state.pending, state.isClosed) = (nil, false)
        }
    }
}

private actor Logins {
    private(set) var begun = 0
    private let endsTheOther: Bool
    private var current: CheckedContinuation<Void, Never>?

    init(endsTheOther: Bool) {
        self.endsTheOther = endsTheOther
    }

    func begin() async {
        await withCheckedContinuation { continuation in
            if endsTheOther { current?.resume() }
            current = continuation
            begun += 1
        }
    }

    func answer() {
        current?.resume()
        current = nil
    }
}
#endif
