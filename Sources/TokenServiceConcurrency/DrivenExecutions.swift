import Synchronization

/// The executions that an explorer drives in this process at the moment.
///
/// Who would share a task across the program, such as a sleep, asks here first: a task that is begun in an execution ends with it,
/// and one that was begun outside doesn't know its time.
package enum DrivenExecutions {
    private static let count = Atomic(0)

    /// Whether there are any.
    package static var areRunning: Bool { count.load(ordering: .relaxed) > 0 }

    /// Runs one of them.
    package static func run<Result>(_ execution: () -> Result) -> Result {
        count.add(1, ordering: .relaxed)
        defer { count.subtract(1, ordering: .relaxed) }
        return execution()
    }
}
