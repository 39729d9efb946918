public import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A `Mutex` whose critical sections Thread Sanitizer can order: the lock that all our modules use.
///
/// Hold it for a few instructions: never across a suspension, never around foreign code. It is inlinable, so that each module
/// compiles it for its own types: as generic code, it made a callback's hit take 50 % longer.
///
/// On Linux the kernel hands a contended `Mutex` over to the thread that has waited longest, which must be scheduled first
/// (swiftlang/swift#88440, until Swift 6.4). Meanwhile the running thread comes back and has to wait, too, and so on: with more
/// threads than processors, each hit costs a switch of threads. So there a thread that finds the lock taken lets others run
/// before it waits. `withLockIfAvailable` would compile each critical section twice: a load took 4 % more instructions. So the
/// value stands beside the mutex, in the cell in which `Mutex` keeps its own, and which Swift 6.2 doesn't show.
@usableFromInline
@safe package struct Lock<Value>: ~Copyable {
    // On Linux the slow path of `Mutex` is not instrumented: the sanitizer misses that an unlock happens before the next lock,
    // and reports races that don't exist. So each owner of the lock writes here before unlocking, and the next owner reads it
    // first, which tells the sanitizer. This adds no ordering beyond the mutex's. The load and the store, both under the lock,
    // are two plain moves on x86, so every build has them. `edge` is placed before the value: after it, it would be on a second
    // cache line, for which threads would contend.
    @usableFromInline let edge = Atomic<Bool>(false)
    #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    @usableFromInline let mutex = Mutex(())
    /// Accessed by the owner of the mutex only.
    @usableFromInline let cell: _Cell<Value>
    #else
    @usableFromInline let mutex: Mutex<Value>
    #endif

    /// Creates a lock around a value.
    @inlinable package init(_ value: consuming sending Value) {
        #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
        cell = _Cell(value)
        #else
        mutex = Mutex(value)
        #endif
    }

    /// Runs `body` with exclusive access to the value.
    ///
    /// The value isn't `inout sending`, as with `Mutex`: Swift 6.2 doesn't let a closure forward such a parameter.
    @inlinable
    @inline(__always)
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if os(Linux) && compiler(>=6.3) && compiler(<6.4)
        if !mutex._unsafeTryLock() { yieldAndLock(mutex) }
        _ = edge.load(ordering: .acquiring)
        defer {
            edge.store(true, ordering: .releasing)
            mutex._unsafeUnlock()
        }
        return unsafe try body(&cell._address.pointee)
        #else
        try mutex.withLock { value throws(Failure) in
            _ = edge.load(ordering: .acquiring)
            defer { edge.store(true, ordering: .releasing) }
            return try body(&value)
        }
        #endif
    }
}

#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
// Safe: the value comes in by `sending`, and only the owner of the mutex accesses it, as with `Mutex` itself.
extension Lock: @unchecked Sendable {}

/// Lets other threads run, and then waits for the mutex.
@usableFromInline
func yieldAndLock(_ mutex: borrowing Mutex<Void>) {
    sched_yield()
    mutex._unsafeLock()
}
#else
extension Lock: Sendable {}
#endif

// MARK: Exploring

private let onMarkedPoint = Lock<(@Sendable (String) -> Void)?>(nil)

/// Marks where another task may run, for the explorer if the program links it; elsewhere it does nothing.
package func markPoint(_ label: String) { onMarkedPoint.withLock { $0 }?(label) }

/// Lets the explorer hear of marked points.
package func hearMarkedPoints(_ body: @escaping @Sendable (String) -> Void) { onMarkedPoint.withLock { $0 = body } }

// MARK: Waiting

/// The continuation of a waiting task: checked in debug builds, and so in the everyday tests; unchecked in other builds.
///
/// The check costs two allocations and a longer frame for each task (`Docs/Decisions/Core.md`). Code that keeps one documents why
/// it is resumed exactly once.
///
/// It carries no value: a resumed task takes its result from under a lock. A task that is resumed before it has suspended reads
/// the continuation's value without synchronization that Thread Sanitizer sees (swiftlang/swift#57803).
@usableFromInline
@safe package struct WaitingTask: Sendable {
    #if DEBUG
    @usableFromInline let continuation: CheckedContinuation<Void, Never>
    #else
    @usableFromInline let continuation: UnsafeContinuation<Void, Never>
    #endif

    #if DEBUG
    @inlinable init(_ continuation: CheckedContinuation<Void, Never>) {
        self.continuation = continuation
    }
    #else
    @inlinable init(_ continuation: UnsafeContinuation<Void, Never>) {
        unsafe self.continuation = continuation
    }
    #endif

    /// Wakes the task.
    @inlinable package func resume() {
        #if DEBUG
        continuation.resume()
        #else
        unsafe continuation.resume()
        #endif
    }

    /// Suspends the task until the value passed to `body` is resumed; `body` runs at once.
    @inlinable
    @inline(__always)
    package static func suspend(
        isolation: isolated (any Actor)? = #isolation, _ body: (WaitingTask) -> Void
    ) async {
        #if DEBUG
        await withCheckedContinuation { body(WaitingTask($0)) }
        #else
        await unsafe withUnsafeContinuation { unsafe body(WaitingTask($0)) }
        #endif
    }
}

/// A result that one task waits for; the first completion counts.
///
/// Inlinable for the same reason as ``Lock``: as generic code, it took a quarter of the time to a callback loader's first token.
@usableFromInline
package final class SingleResult<Value: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var result: Result<Value, any Error>?
        /// Resumed exactly once: a task is stored here if there is no result, and removed to be resumed.
        @usableFromInline var waiting: WaitingTask?

        @inlinable init() {}
    }

    @usableFromInline let state = Lock(State())

    /// Creates a result that isn't complete.
    @inlinable package init() {}

    /// Sets the result and wakes the task that waits for it, unless there is a result already.
    @inlinable package func complete(with result: Result<Value, any Error>) {
        let waiting = state.withLock { state in
            if state.result == nil { state.result = result }
            return state.waiting.take()
        }
        waiting?.resume()
    }

    /// Waits for the result; only one task may call this, once.
    @inlinable package func value() async throws -> Value {
        await WaitingTask.suspend { task in
            let isComplete = state.withLock { state in
                if state.result == nil { state.waiting = task }
                return state.result != nil
            }
            if isComplete { task.resume() }
        }
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }

    /// Waits for the result, and reports if the waiting task is, or becomes, more urgent than `known`, on systems that report
    /// priority escalation.
    package func value(known: Urgency, onRaise: @escaping @Sendable (Urgency) -> Void) async throws -> Value {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return try await value() }
        return try await withTaskPriorityEscalationHandler {
            // The priority may have been raised before the handler was installed.
            let current = Urgency.current
            if known < current { onRaise(current) }
            return try await value()
        } onPriorityEscalated: { _, priority in
            onRaise(Urgency(priority))
        }
    }
}

/// Lets tasks take turns in the order of their arrival.
///
/// No lock is held during a task's turn. A task that is cancelled while it waits leaves at once.
package final class TurnLine: Sendable {
    /// The first task in the line has its turn.
    private let line = Lock<[SingleResult<Void>]>([])

    package init() {}

    /// Waits for the task's turn, and performs `body` in it.
    package func turn<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await turn({ try await $0.value() }, then: body)
    }

    /// The same with a wait that may end before the turn has come, with an error.
    package func turn<Value: Sendable>(
        _ wait: (SingleResult<Void>) async throws -> Void, then body: () async throws -> Value
    ) async throws -> Value {
        let place = SingleResult<Void>()
        let isFirst = line.withLock { line in
            line.append(place)
            return line.count == 1
        }
        if !isFirst {
            do {
                try await withTaskCancellationHandler {
                    try await wait(place)
                } onCancel: {
                    leave(place)
                }
            } catch {
                leave(place, andTurn: true)
                throw error
            }
        }
        defer { next() }
        try Task.checkCancellation()
        return try await body()
    }

    /// Removes the place of a waiting task that was cancelled, or has stopped waiting; a task that was cancelled in its turn isn't
    /// affected.
    private func leave(_ place: SingleResult<Void>, andTurn: Bool = false) {
        let index = line.withLock { line in
            let index = line.firstIndex { $0 === place }
            if let index, index > 0 { line.remove(at: index) }
            return index
        }
        guard let index else { return }
        if index > 0 { place.complete(with: .failure(CancellationError())) } else if andTurn { next() }
    }

    private func next() {
        let next = line.withLock { line in
            line.removeFirst()
            return line.first
        }
        next?.complete(with: .success(()))
    }
}

// MARK: Tasks and their priority

/// A task's priority as a value of known size.
///
/// A type that stores the library's `TaskPriority` is copied by way of its metadata, which took a tenth of the time to a first
/// token.
@usableFromInline
package struct Urgency: Comparable, Sendable {
    @usableFromInline let value: UInt8

    @inlinable init(value: UInt8) {
        self.value = value
    }

    @inlinable package init(_ priority: TaskPriority) {
        value = priority.rawValue
    }

    /// The same as `TaskPriority.background`, without a call at each use.
    @inlinable package static var background: Urgency { Urgency(value: 9) }

    /// The urgency of the current task.
    @inlinable package static var current: Urgency { Urgency(Task.currentPriority) }

    @inlinable package var priority: TaskPriority { TaskPriority(rawValue: value) }

    @inlinable package static func < (one: Urgency, other: Urgency) -> Bool { one.value < other.value }
}

extension Task where Failure == any Error {
    /// Starts a detached task on an executor; `nil`: on the default pool.
    ///
    /// A task with an executor preference, even for `nil`, looks up its preferred executor at each step. If a task can't throw,
    /// its operation is wrapped in a function that can.
    @discardableResult
    package static func detached(
        on executor: (any TaskExecutor)?, priority: TaskPriority? = nil,
        operation: sending @escaping @isolated(any) () async throws -> Success
    ) -> Task {
        guard let executor else { return detached(priority: priority, operation: operation) }
        return detached(executorPreference: executor, priority: priority, operation: operation)
    }
}

extension Task where Success == Void, Failure == any Error {
    /// Raises the task's urgency to the given one; a more urgent task stays as it is.
    package func raise(to urgency: Urgency, on executor: (any TaskExecutor)?) {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            escalatePriority(to: urgency.priority)
        } else {
            // Awaiting a task escalates its priority to the awaiting task's; this task ends when the awaited one does.
            Task.detached(on: executor, priority: urgency.priority) { _ = await result }
        }
    }
}

// MARK: Driven executions

/// The executions that an explorer currently drives in this process.
///
/// Code that would share a task across the program, such as a sleep, checks here first: a task started in an execution ends with
/// it, and one started outside doesn't use its virtual time.
package enum DrivenExecutions {
    private static let count = Atomic(0)

    /// Whether there are any such executions.
    package static var areRunning: Bool { count.load(ordering: .relaxed) > 0 }

    /// Runs one such execution.
    package static func run<Result>(_ execution: () -> Result) -> Result {
        count.add(1, ordering: .relaxed)
        defer { count.subtract(1, ordering: .relaxed) }
        return execution()
    }
}
