import Dispatch
import TokenServiceConcurrency

/// A semaphore that an exploration can see: a thread that waits for it is not picked, and an endless wait is found and named.
///
/// Use it in code that blocks its thread until another one is done. Outside an exploration at the granularity of accesses it
/// is a plain semaphore.
public final class InterleavedSemaphore: Sendable {
    /// Taken while the count is zero.
    private let gate: InterleavedLock.Gate
    private let count: Lock<Int>
    private let semaphore: DispatchSemaphore

    /// Creates a semaphore.
    ///
    /// - Parameters:
    ///   - name: Its name in reports.
    ///   - value: How many threads may pass before the first signal; not negative.
    public init(_ name: String, value: Int = 0) {
        gate = InterleavedLock.Gate(name: name)
        if value < 1 { _ = gate.take() }
        count = Lock(max(value, 0))
        // Signalled up to the value, not created with it: Dispatch crashes a process that releases a semaphore below its initial
        // value.
        semaphore = DispatchSemaphore(value: 0)
        for _ in 0..<max(value, 0) { semaphore.signal() }
    }

    /// Blocks the thread until there is a signal for it: each signal lets one thread pass.
    public func wait() {
        gate.expectHome("InterleavedSemaphore")
        guard let thread = ControlledThread.current, !thread.isQuiet else { return semaphore.wait() }
        thread.pause()
        while !pass(), thread.canStop {
            thread.note("waits for the semaphore '\(gate.name)'")
            thread.pause(for: .gate(gate))
        }
        thread.note("passes the semaphore '\(gate.name)'")
    }

    /// Lets one thread pass: one that is waiting, or else the next that waits.
    public func signal() {
        gate.expectHome("InterleavedSemaphore")
        guard let thread = ControlledThread.current, !thread.isQuiet else {
            semaphore.signal()
            return
        }
        thread.pause()
        count.withLock { count in
            count += 1
            gate.free()
        }
        thread.note("signals the semaphore '\(gate.name)'")
    }

    private func pass() -> Bool {
        count.withLock { count in
            guard count > 0 else { return false }
            count -= 1
            if count == 0 { _ = gate.take() }
            return true
        }
    }
}
