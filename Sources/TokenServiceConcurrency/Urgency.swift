/// A task's priority as a value whose size is known: whatever stores the library's own is handled by way of its metadata, which
/// took a tenth of a first token.
@usableFromInline
package struct Urgency: Comparable, Sendable {
    @usableFromInline let value: UInt8

    @inlinable package init(_ priority: TaskPriority) {
        value = priority.rawValue
    }

    package static let background = Urgency(.background)

    /// That of the current task.
    @inlinable package static var current: Urgency { Urgency(Task.currentPriority) }

    @inlinable package var priority: TaskPriority { TaskPriority(rawValue: value) }

    @inlinable package static func < (one: Urgency, other: Urgency) -> Bool { one.value < other.value }
}
