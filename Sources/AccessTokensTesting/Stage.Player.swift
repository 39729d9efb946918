import TokenServiceConcurrency

extension Stage {
    /// One task on a stage, and its outcome.
    ///
    /// All members may be used concurrently, from any thread.
    public struct Player<Value: Sendable>: Sendable {
        private let task: Task<Void, Never>
        private let outcome: Outcome

        init(
            on stage: Stage, priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Value
        ) {
            let outcome = Outcome()
            task = Task(executorPreference: stage, priority: priority) {
                do { outcome.set(.success(try await body())) } catch { outcome.set(.failure(error)) }
            }
            self.outcome = outcome
        }

        /// Whether the task has ended, with a value or with an error.
        public var isDone: Bool { outcome.result != nil }

        /// The value that the task returned; `nil` while it runs, or if it threw.
        public var value: Value? { try? outcome.result?.get() }

        /// The error that the task threw; `nil` while it runs, or if it returned.
        public var error: (any Error)? { if case .failure(let error) = outcome.result { error } else { nil } }

        /// Cancels the task, which reacts at the stage's next ``Stage/run()``.
        public func cancel() { task.cancel() }

        /// Whether the task threw `CancellationError`.
        package var isCancelledWithError: Bool { error is CancellationError }

        private final class Outcome: Sendable {
            private let lock = Lock<Result<Value, any Error>?>(nil)

            var result: Result<Value, any Error>? { lock.withLock { $0 } }
            func set(_ result: Result<Value, any Error>) { lock.withLock { $0 = result } }
        }
    }
}
