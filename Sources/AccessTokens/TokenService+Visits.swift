extension TokenService {
    /// Comes in to the actor, never on an executor that foreign code may block.
    ///
    /// A default actor runs where the task that visits it prefers to run. If caller A prefers an executor whose only thread is
    /// busy, its visit waits there, and everything behind it: caller B on the pool, and the alarm that would end B's wait. So a
    /// task with a preference of its own visits on the service's executor, and returns to its own afterwards.
    nonisolated(nonsending) func visit<Outcome: Sendable>(
        _ body: @Sendable (isolated TokenService) throws -> Outcome
    ) async rethrows -> Outcome {
        guard prefersForeignExecutor else { return try await body(self) }
        return try await withTaskExecutorPreference(executor ?? globalConcurrentExecutor) { try await body(self) }
    }

    private nonisolated var prefersForeignExecutor: Bool {
        unsafe withUnsafeCurrentTask { task in
            guard let preferred = unsafe task?.unownedTaskExecutor else { return false }
            return executor.map { unsafe preferred != $0.asUnownedTaskExecutor() } ?? true
        }
    }
}
