import TokenServiceConcurrency

/// A manual clock with a fault, or with an action when it is read.
package struct OddClock: Clock {
    package enum Fault: Sendable {
        case wakesEarly(by: Duration)
        case failsToSleep
        case neverWakes
        case none
    }

    package struct Failure: Error {}

    private let clock: ManualClock
    private let fault: Fault
    private let onReading: @Sendable () -> Void

    package init(_ clock: ManualClock, fault: Fault = .none, onReading: @escaping @Sendable () -> Void = {}) {
        self.clock = clock
        self.fault = fault
        self.onReading = onReading
    }

    package var now: ManualClock.Instant {
        onReading()
        return clock.now
    }

    package var minimumResolution: Duration { .zero }

    package func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        switch fault {
        case .none: try await clock.sleep(until: deadline, tolerance: nil)
        case .wakesEarly(let time): try await clock.sleep(until: deadline.advanced(by: .zero - time), tolerance: nil)
        case .failsToSleep: throw Failure()
        case .neverWakes: try await clock.sleep(until: deadline.advanced(by: .seconds(1_000_000_000)), tolerance: nil)
        }
    }
}
