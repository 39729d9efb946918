import Synchronization
import TokenServiceConcurrency

/// A lock that an exploration can see: a thread that waits for it is not picked, and a deadlock is found and named.
///
/// Outside an exploration at the granularity of accesses it is a plain mutex. It is not recursive.
public final class InterleavedLock: Sendable {
    /// The lock's state in an exploration: taken or free.
    final class Gate: Interleavings.Gate {
        private struct State {
            var isTaken = false
            /// The task that holds it, by the engine's number.
            var holder: Int?
            /// The execution that used it last.
            weak var engine: Engine?
        }

        let name: String
        private let state = Lock(State())

        init(name: String) {
            self.name = name
        }

        var isOpen: Bool { state.withLock { !$0.isTaken } }
        var title: String { "the lock '\(name)'" }

        var holder: Int? { state.withLock { $0.holder } }

        func take(by task: Int? = nil) -> Bool {
            state.withLock { state in
                guard !state.isTaken else { return false }
                (state.isTaken, state.holder) = (true, task)
                return true
            }
        }

        func free() {
            state.withLock { ($0.isTaken, $0.holder) = (false, nil) }
        }

        /// Reports an escape if an outside thread uses the same lock as an execution: the thread and the execution would not wait
        /// for each other.
        func expectHome(_ call: StaticString) {
            let own = ControlledThread.current?.engine ?? Simulation.current?.engine
            let engine = state.withLock { state in
                if let own { state.engine = own }
                return state.engine
            }
            engine?.expectHome(call)
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
        gate.expectHome("InterleavedLock")
        guard let thread = ControlledThread.current, !thread.isQuiet else {
            return try mutex.withLock { _ throws(Failure) in try body() }
        }
        thread.pause()
        // Only the picked thread runs, so no other takes the lock between the check and the step.
        while !gate.take(by: thread.task), thread.canStop {
            thread.note("waits for the lock '\(gate.name)'")
            thread.pause(for: .gate(gate))
        }
        thread.note("takes the lock '\(gate.name)'")
        defer {
            gate.free()
            thread.note("frees the lock '\(gate.name)'")
            // The following code may change something that other tasks see, and may have no point itself.
            thread.pause()
        }
        return try body()
    }
}
