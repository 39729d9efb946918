import TokenServiceConcurrency

/// An action of another thread between two steps of a call; it runs once, at a certain reading of an ``OddClock``.
package final class Meanwhile: Sendable {
    private let next = Lock<(readings: Int, body: @Sendable () -> Void)?>(nil)

    package init() {}

    /// Performs `body` just before the given reading of the clock; 1 is the next reading.
    package func atReading(_ number: Int, perform body: @escaping @Sendable () -> Void) {
        next.withLock { $0 = (number, body) }
    }

    /// Call this at every reading.
    package func read() {
        let body: (@Sendable () -> Void)? = next.withLock { next in
            guard let (readings, body) = next else { return nil }
            next = readings == 1 ? nil : (readings - 1, body)
            return readings == 1 ? body : nil
        }
        // Outside the lock: `body` may read the clock itself.
        body?()
    }
}
