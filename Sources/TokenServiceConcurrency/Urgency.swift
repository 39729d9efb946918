/// A task's priority as a value of known size.
///
/// A type that stores the library's `TaskPriority` is copied by way of its metadata, which took a tenth of the time to a first
/// token.
@usableFromInline
package struct Urgency: Comparable, Sendable {
    @usableFromInline let value: UInt8

    @inlinable init(value: UInt8) {
        self.value = value
    }

    @inlinable package init(_ priority: TaskPriority) {
        value = priority.rawValue
    }

    /// Same as `TaskPriority.background`, without a call at each use.
    @inlinable package static var background: Urgency { Urgency(value: 9) }

    /// The urgency of the current task.
    @inlinable package static var current: Urgency { Urgency(Task.currentPriority) }

    @inlinable package var priority: TaskPriority { TaskPriority(rawValue: value) }

    @inlinable package static func < (one: Urgency, other: Urgency) -> Bool { one.value < other.value }
}

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
