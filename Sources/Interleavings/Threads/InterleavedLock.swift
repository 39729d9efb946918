import Synchronization
import TokenServiceConcurrency

/// A lock that an exploration can see: a thread that waits for it is not picked, and a deadlock is found and named.
///
/// Outside an exploration at the granularity of accesses it is a plain mutex. It is not recursive.
public final class InterleavedLock: Sendable {
    /// The lock's state in an exploration: taken or free.
    final class Gate: Sendable {
        let name: String
        private let taken = Lock(false)

        init(name: String) {
            self.name = name
        }

        var isTaken: Bool { taken.withLock { $0 } }

        func take() -> Bool {
            taken.withLock { taken in
                defer { taken = true }
                return !taken
            }
        }

        func free() {
            taken.withLock { $0 = false }
        }
    }

    private let gate: Gate
    private let mutex = Mutex(())

    /// Creates a lock that is free.
    ///
    /// - Parameter name: Its name in reports.
    public init(_ name: String) {
        gate = Gate(name: name)
    }

    /// Runs `body` while it holds the lock.
    public func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        guard let thread = ControlledThread.current, !thread.isQuiet else {
            return try mutex.withLock { _ throws(Failure) in try body() }
        }
        thread.pause()
        // Only the picked thread runs, so no other takes the lock between the check and the step. At the end all may pass.
        while !gate.take(), !thread.isEnding {
            thread.note("waits for the lock '\(gate.name)'")
            thread.pause(for: gate)
        }
        thread.note("takes the lock '\(gate.name)'")
        defer {
            gate.free()
            thread.note("frees the lock '\(gate.name)'")
        }
        return try body()
    }
}
