/// A result that one task waits for: the first of all that it is completed with.
///
/// The continuation carries no value: the result passes through the lock. So Thread Sanitizer, too, sees that it is written, on
/// whatever thread, before it is read.
///
/// Inlinable for the same reason as ``Lock``: called as generic code, it cost a callback loader's first token a quarter of its time.
@usableFromInline
package final class SingleResult<Value: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var result: Result<Value, any Error>?
        @usableFromInline var waiting: CheckedContinuation<Void, Never>?

        @inlinable init() {}
    }

    @usableFromInline let state = Lock(State())

    /// Creates a result that is still to come.
    @inlinable package init() {}

    /// Sets the result and wakes the task that waits for it, unless there is a result already.
    @inlinable package func complete(with result: Result<Value, any Error>) {
        let waiting = state.withLock { state in
            if state.result == nil { state.result = result }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// Waits for the result; only one task may call it, once.
    @inlinable package func value() async throws -> Value {
        await withCheckedContinuation { continuation in
            let isComplete = state.withLock { state in
                if state.result == nil { state.waiting = continuation }
                return state.result != nil
            }
            if isComplete { continuation.resume() }
        }
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }
}
