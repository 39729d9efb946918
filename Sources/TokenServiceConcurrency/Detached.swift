extension Task where Failure == Never {
    /// Starts a detached task on an executor; `nil`: on the default pool.
    ///
    /// A task that is created with a preference, be it for `nil`, looks for its preferred executor at each of its steps.
    @inlinable
    @discardableResult
    package static func detached(
        on executor: (any TaskExecutor)?, priority: TaskPriority? = nil,
        operation: sending @escaping @isolated(any) () async -> Success
    ) -> Task {
        guard let executor else { return detached(priority: priority, operation: operation) }
        return detached(executorPreference: executor, priority: priority, operation: operation)
    }
}
