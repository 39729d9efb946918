extension Task where Failure == any Error {
    /// Starts a detached task on an executor; `nil`: on the default pool.
    ///
    /// A task with an executor preference, even for `nil`, looks for its preferred executor at each step. A task that can't fail
    /// has its operation wrapped in a function that could.
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
            // A task that awaits another lends it its priority; this task ends when the other one does.
            Task.detached(on: executor, priority: urgency.priority) { _ = await result }
        }
    }
}
