public import TokenServiceConcurrency

/// A simulation's clock, which jumps from deadline to deadline and is independent of real time.
public struct VirtualClock: Clock, Sendable {
    /// A time since the execution began.
    public struct Instant: OffsetInstant, Described {
        /// The time since the execution began.
        public let offset: Duration

        package init(offset: Duration) { self.offset = offset }

        package var text: String { "\(offset)" }
    }

    let engine: Engine

    /// The present time.
    public var now: Instant {
        engine.expectHome("simulation.clock")
        return Instant(offset: engine.state.withLock { $0.clock.now })
    }
    /// One nanosecond, though the clock keeps every `Duration` exactly.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Suspends until the deadline; if it has passed, until the schedule picks the task again.
    ///
    /// - Throws: `CancellationError`, without waiting for the time, if the task is cancelled or the execution is over.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let id = engine.newTimer()
        try await withTaskCancellationHandler {
            try await Suspension.begin { suspension in
                engine.sleep(id, until: deadline.offset, suspension)
                // The task was cancelled before the timer was registered, so the handler found no timer.
                if Task.isCancelled { engine.cancelNewTimer(id) }
            }
        } onCancel: {
            engine.cancelTimer(id)
        }
    }
}
