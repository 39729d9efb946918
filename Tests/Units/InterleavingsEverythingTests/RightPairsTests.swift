#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing

/// Forty programs that never fail on the real runtime: each way to let one piece of work in at a time, in each form of concurrency.
@Suite struct `Right code of two parts` {
    @Test(arguments: Entrance.Kind.allCases, Form.allCases)
    func `passes and ends under every explored schedule`(_ kind: Entrance.Kind, _ form: Form) async throws {
        for granularity in [Granularity.jobs, .accesses] {
            try await explore(
                .mixed(schedules: .everyday(15, thorough: 150)), granularity: granularity, driving: .everythingAndQueues
            ) { simulation in
                let entrance = Entrance(kind)
                simulation.spawn("first") { await form.run(3, entrance) }
                simulation.spawn("second") { await form.run(2, entrance) }
                try await simulation.settle()
                try simulation.require(entrance.visits == 5, "\(entrance.visits) of 5 visits")
                try simulation.require(entrance.mostInside == 1, "\(entrance.mostInside) at once")
            }
        }
    }
}

/// Lets one piece of work in at a time.
final class Entrance: Sendable {
    enum Kind: CaseIterable, Sendable {
        case lock, recursiveLock, mutex, condition, semaphore, semaphoreWithLimit, queue, barrier
    }

    private let kind: Kind
    private let (lock, recursive, condition) = (NSLock(), NSRecursiveLock(), NSCondition())
    private let semaphore = DispatchSemaphore(value: 1)
    private let queue = DispatchQueue(label: "entrance")
    private let wide = DispatchQueue(label: "wide entrance", attributes: .concurrent)
    private let isTaken = Atomic(false), inner = Mutex(0)
    private let inside = Atomic(0), most = Atomic(0), count = Atomic(0)

    init(_ kind: Kind) {
        self.kind = kind
    }

    var visits: Int { count.load(ordering: .relaxed) }
    var mostInside: Int { most.load(ordering: .relaxed) }

    func visit() {
        switch kind {
        case .lock: lock.withLock { work() }
        case .recursiveLock: recursive.withLock { recursive.withLock { work() } }
        case .mutex: inner.withLock { _ in work() }
        case .condition: visitByCondition()
        case .semaphore:
            semaphore.wait()
            work()
            semaphore.signal()
        case .semaphoreWithLimit:
            while semaphore.wait(timeout: .now() + 1) == .timedOut {}
            work()
            semaphore.signal()
        case .queue: queue.sync { work() }
        case .barrier: wide.sync(flags: .barrier) { work() }
        }
    }

    private func visitByCondition() {
        condition.lock()
        while isTaken.load(ordering: .relaxed) { _ = condition.wait(until: Date(timeIntervalSinceNow: 5)) }
        isTaken.store(true, ordering: .relaxed)
        condition.unlock()
        work()
        condition.lock()
        isTaken.store(false, ordering: .relaxed)
        condition.signal()
        condition.unlock()
    }

    private func work() {
        let now = inside.add(1, ordering: .relaxed).newValue
        most.max(now, ordering: .relaxed)
        interleavingPoint("inside")
        count.add(1, ordering: .relaxed)
        inside.subtract(1, ordering: .relaxed)
    }
}

/// Forms of concurrency in which work is done a number of times.
enum Form: CaseIterable, Sendable {
    case group, handler, stream, continuation, timer

    func run(_ count: Int, _ entrance: Entrance) async {
        switch self {
        case .group:
            await withTaskGroup { group in
                for _ in 1...count { group.addTask { entrance.visit() } }
            }
        case .handler:
            for _ in 1...count {
                let task = Task {
                    await withTaskCancellationHandler {
                        await Task.yield()
                        entrance.visit()
                    } onCancel: {
                    }
                }
                task.cancel()
                await task.value
            }
        case .stream:
            let (numbers, source) = AsyncStream.makeStream(of: Int.self)
            async let visits: Void = Self.visit(entrance, for: numbers)
            for number in 1...count { source.yield(number) }
            source.finish()
            await visits
        case .continuation:
            let room = Doorkeeper()
            for _ in 1...count { await room.admit(entrance) }
        case .timer:
            for number in 1...count {
                try? await Task.sleep(for: .seconds(number))
                await withCheckedContinuation { done in
                    DispatchQueue.global().asyncAfter(deadline: .now() + 1) {
                        entrance.visit()
                        done.resume()
                    }
                }
            }
        }
    }

    private static func visit(_ entrance: Entrance, for numbers: AsyncStream<Int>) async {
        for await _ in numbers { entrance.visit() }
    }
}

/// Begins with a wait, and works in the actor after it.
private actor Doorkeeper {
    func admit(_ entrance: Entrance) async {
        await withCheckedContinuation { done in Task { done.resume() } }
        entrance.visit()
    }
}
#endif
