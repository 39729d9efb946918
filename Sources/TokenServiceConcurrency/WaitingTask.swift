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
