import TokenServiceConcurrency

/// A simulation's clock: it jumps from deadline to deadline and does not run with real time.
public struct VirtualClock: Clock, Sendable {
    /// A time since the execution began.
    public struct Instant: InstantProtocol, Sendable, CustomStringConvertible {
        /// The time since the execution began.
        public let offset: Duration

        /// Returns the instant that is later by a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// Returns how much later another instant is.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Whether one instant is before another.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
        /// The time since the execution began.
        public var description: String { "\(offset)" }
    }

    let engine: Engine

    /// The present time.
    public var now: Instant {
        engine.expectHome("simulation.clock")
        return Instant(offset: engine.state.withLock { $0.now })
    }
    /// One nanosecond; the clock itself has any precision.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Suspends until the deadline; after the deadline, until the schedule picks the task again.
    ///
    /// - Throws: `CancellationError`, without waiting for the time, if the task is cancelled or the execution is over.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let id = engine.newTimer()
        try await withTaskCancellationHandler {
            try await Suspension.begin { suspension in
                engine.sleep(id, until: deadline.offset, suspension)
                // Cancelled before the timer was registered, when the handler found nothing.
                if Task.isCancelled { engine.cancelNewTimer(id) }
            }
        } onCancel: {
            engine.cancelTimer(id)
        }
    }
}
