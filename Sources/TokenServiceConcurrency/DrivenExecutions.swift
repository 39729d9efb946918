import Synchronization

/// The executions that an explorer currently drives in this process.
///
/// Code that would share a task across the program, such as a sleep, checks here first: a task that is started in an execution
/// ends with it, and one that was started outside doesn't know its time.
package enum DrivenExecutions {
    private static let count = Atomic(0)

    /// Whether there are any such executions.
    package static var areRunning: Bool { count.load(ordering: .relaxed) > 0 }

    /// Runs one such execution.
    package static func run<Result>(_ execution: () -> Result) -> Result {
        count.add(1, ordering: .relaxed)
        defer { count.subtract(1, ordering: .relaxed) }
        return execution()
    }
}
