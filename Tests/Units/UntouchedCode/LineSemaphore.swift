import Synchronization

/// A semaphore over a lock: signalling needs no `await`, and a task that is cancelled in line throws at once.
///
/// A signalled task may be cancelled before it continues, and then its cancellation handler runs, too. If the semaphore hasn't
/// forgotten the task by then, it resumes the task a second time.
package final class LineSemaphore: Sendable {
    private typealias Continuation = CheckedContinuation<Void, any Error>

    private struct State {
        var free: Int
        var last = 0
        /// The tasks that wait, in the order of their arrival.
        var line: [Int] = []
        var continuations: [Int: Continuation] = [:]
        var woken: Set<Int> = []
        var surplusResumes = 0

        mutating func enter(_ number: Int, _ continuation: Continuation) -> (Continuation, Result<Void, any Error>)? {
            if Task.isCancelled { return (continuation, .failure(CancellationError())) }
            if free > 0 {
                free -= 1
                return (continuation, .success(()))
            }
            line.append(number)
            continuations[number] = continuation
            return nil
        }

        mutating func wake(_ number: Int) -> Continuation? {
            guard let continuation = continuations[number] else { return nil }
            if woken.insert(number).inserted { return continuation }
            surplusResumes += 1
            return nil
        }
    }

    private let state: Mutex<State>
    private let forgets: Bool

    /// - Parameter forgets: Whether a task is forgotten as soon as it is signalled; otherwise when it continues.
    package init(value: Int, forgets: Bool) {
        state = Mutex(State(free: value))
        self.forgets = forgets
    }

    /// How often a task would have been resumed twice.
    ///
    /// A semaphore that doesn't count this resumes a continuation twice: Swift traps, or anything may happen.
    package var surplusResumes: Int { state.withLock { $0.surplusResumes } }

    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    package func wait() async throws {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        defer { state.withLock { _ = $0.continuations.removeValue(forKey: number) } }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = state.withLock { $0.enter(number, continuation) }
                if let (continuation, result) = answer { continuation.resume(with: result) }
            }
        } onCancel: {
            leave(number)
        }
    }

    package func signal() {
        let continuation: Continuation? = state.withLock { state in
            guard !state.line.isEmpty else {
                state.free += 1
                return nil
            }
            let number = state.line.removeFirst()
            let continuation = state.wake(number)
            if forgets { state.continuations[number] = nil }
            return continuation
        }
        continuation?.resume()
    }

    private func leave(_ number: Int) {
        let continuation = state.withLock { state in
            state.line.removeAll { $0 == number }
            return state.wake(number)
        }
        continuation?.resume(throwing: CancellationError())
    }
}
