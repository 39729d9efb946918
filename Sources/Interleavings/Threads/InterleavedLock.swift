import Synchronization
import TokenServiceConcurrency

/// A lock that an exploration can see: who waits for it is not picked, and a deadlock is found and named.
///
/// Anywhere but in an exploration at the granularity of accesses it is a plain mutex. It is not recursive.
public final class InterleavedLock: Sendable {
    /// Whether the lock is taken, in an exploration.
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

    /// Runs `body` while nobody else has the lock.
    public func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        guard let worker = Worker.current, !worker.isQuiet else {
            return try mutex.withLock { _ throws(Failure) in try body() }
        }
        worker.pause()
        // Only the picked thread runs, so nobody takes it between the look and the step; at the end all may pass.
        while !gate.take(), !worker.isEnding {
            worker.note("waits for the lock '\(gate.name)'")
            worker.pause(for: gate)
        }
        worker.note("takes the lock '\(gate.name)'")
        defer {
            gate.free()
            worker.note("frees the lock '\(gate.name)'")
        }
        return try body()
    }
}
