/// The first of several answers, and the one task that waits for it.
///
/// The continuation carries no value: the answer passes through the lock, which orders its writing, on any thread, before
/// its reading also in the eyes of Thread Sanitizer.
package final class FirstAnswer<Value: Sendable>: Sendable {
    private struct State {
        var answer: Result<Value, any Error>?
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Lock(State())

    package init() {}

    /// Answers; whoever does it after the first is ignored.
    package func give(_ answer: Result<Value, any Error>) {
        let waiting = state.withLock { state in
            if state.answer == nil { state.answer = answer }
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume()
    }

    /// Waits for the first answer; to be called once.
    package func value() async throws -> Value {
        await withCheckedContinuation { continuation in
            let isAnswered = state.withLock { state in
                if state.answer == nil { state.waiting = continuation }
                return state.answer != nil
            }
            if isAnswered { continuation.resume() }
        }
        guard let answer = state.withLock({ $0.answer }) else { throw CancellationError() }
        return try answer.get()
    }
}
