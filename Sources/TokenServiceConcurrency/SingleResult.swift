/// A result that one task waits for; the first completion counts.
///
/// Inlinable for the same reason as ``Lock``: called as generic code, it cost a callback loader's first token a quarter of its
/// time.
@usableFromInline
package final class SingleResult<Value: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var result: Result<Value, any Error>?
        /// Resumed exactly once: a task is put here if there is no result, and taken out to be resumed.
        @usableFromInline var waiting: WaitingTask?

        @inlinable init() {}
    }

    @usableFromInline let state = Lock(State())

    /// Creates a result that has yet to come.
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

    /// The same; also reports when the waiting task is more urgent than `known`, or becomes so, on systems that notify of it.
    package func value(known: Urgency, onRaise: @escaping @Sendable (Urgency) -> Void) async throws -> Value {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return try await value() }
        return try await withTaskPriorityEscalationHandler {
            // It may have been raised before there was a handler.
            let current = Urgency.current
            if known < current { onRaise(current) }
            return try await value()
        } onPriorityEscalated: { _, priority in
            onRaise(Urgency(priority))
        }
    }
}
