/// A task that a simulation started; the schedule waits for it to finish even if you don't keep this value.
///
/// An error of the task fails the schedule unless something asks for ``value`` or ``result`` before the schedule ends, or
/// ``allowingError()`` was called. Every member may be used from any task of the execution.
public struct SpawnedTask<Value: Sendable>: Sendable {
    package let task: Task<Value, any Error>
    let number: Int
    let engine: Engine

    /// The task's value, once it has ended.
    ///
    /// A cancelled caller continues to wait, as with `Task.value`.
    ///
    /// - Throws: The error of the task, which then counts as read.
    public var value: Value {
        get async throws {
            engine.read(spawned: number)
            return try await task.value
        }
    }

    /// The task's value or its error, once it has ended; the error then counts as read.
    ///
    /// A cancelled caller continues to wait, as with `Task.result`.
    public var result: Result<Value, any Error> {
        get async {
            engine.read(spawned: number)
            return await task.result
        }
    }

    /// Allows an error of the task: nothing has to read it.
    ///
    /// Use it if the scenario allows an error, and other requirements check what must hold.
    ///
    /// - Returns: The same task.
    @discardableResult
    public func allowingError() -> Self {
        engine.read(spawned: number)
        return self
    }

    /// Whether the task was cancelled: by ``cancel()``, or at the end of its execution.
    package var isCancelled: Bool { task.isCancelled }

    /// Cancels the task; if it then throws a `CancellationError`, that needs no reader.
    public func cancel() {
        task.cancel()
    }
}
