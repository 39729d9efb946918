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
