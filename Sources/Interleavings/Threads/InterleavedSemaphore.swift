import Dispatch
import TokenServiceConcurrency

/// A semaphore that an exploration can see: who waits for it is not picked, and a wait without end is found and named.
///
/// For code that blocks its thread until another one is done. Anywhere but in an exploration at the granularity of accesses
/// it is a plain semaphore.
public final class InterleavedSemaphore: Sendable {
    /// Taken while the count is zero.
    private let gate: InterleavedLock.Gate
    private let count: Lock<Int>
    private let semaphore: DispatchSemaphore

    /// Creates a semaphore.
    ///
    /// - Parameters:
    ///   - name: Its name in reports.
    ///   - value: How many may pass before the first signal; not negative.
    public init(_ name: String, value: Int = 0) {
        gate = InterleavedLock.Gate(name: name)
        if value < 1 { _ = gate.take() }
        count = Lock(max(value, 0))
        // Raised, not made with the value: Dispatch ends a process that releases a semaphore below its first value.
        semaphore = DispatchSemaphore(value: 0)
        for _ in 0..<max(value, 0) { semaphore.signal() }
    }

    /// Blocks the thread until somebody has signalled, once for each who waits.
    public func wait() {
        guard let worker = Worker.current, !worker.isQuiet else { return semaphore.wait() }
        worker.pause()
        while !pass(), !worker.isEnding {
            worker.note("waits for the semaphore '\(gate.name)'")
            worker.pause(for: gate)
        }
        worker.note("passes the semaphore '\(gate.name)'")
    }

    /// Lets one of those pass who wait, or will.
    public func signal() {
        guard let worker = Worker.current, !worker.isQuiet else {
            semaphore.signal()
            return
        }
        worker.pause()
        count.withLock { count in
            count += 1
            gate.free()
        }
        worker.note("signals the semaphore '\(gate.name)'")
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
