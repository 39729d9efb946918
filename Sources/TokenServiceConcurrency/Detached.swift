extension Task where Failure == any Error {
    /// Starts a detached task on an executor; `nil`: on the default pool.
    ///
    /// A task that is created with a preference, be it for `nil`, looks for its preferred executor at each of its steps, and one that
    /// can't fail has its operation wrapped in a function that could.
    @discardableResult
    package static func detached(
        on executor: (any TaskExecutor)?, priority: TaskPriority? = nil,
        operation: sending @escaping @isolated(any) () async throws -> Success
    ) -> Task {
        guard let executor else { return detached(priority: priority, operation: operation) }
        return detached(executorPreference: executor, priority: priority, operation: operation)
    }
}
