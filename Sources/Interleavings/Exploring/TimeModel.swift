/// When a simulation's clock moves: always to the next deadline, never by itself.
public enum TimeModel: Sendable, Hashable {
    /// When nothing can run: work takes no time, as in Go's `testing/synctest`.
    case whenIdle
    /// At any step: a timer may fire while work is pending, as on a loaded machine.
    case anytime
}

/// Where an exploration may switch from one task to another.
public enum Granularity: Sendable, Hashable {
    /// Between jobs: where a task suspends, hops to another actor or ends, and between a queue's blocks.
    ///
    /// All that a data-race free program can show, and the fastest.
    case jobs
    /// Also inside synchronous code, at each ``interleavingPoint(_:)``, each access to an ``Interleaved`` variable, and
    /// where a thread waits for an ``InterleavedLock``: each piece of work has a thread of its own, and one runs at a time.
    case accesses
}
