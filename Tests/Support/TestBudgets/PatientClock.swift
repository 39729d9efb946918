/// A clock that runs at a hundredth of the real speed, for services that run in parallel with hundreds of other tests.
///
/// Those share a pool of a few threads, which may keep a service from a store or a loader for longer than its limits: 5 s become
/// 500 s. A pause becomes a hundred times as long, too, but still ends.
package struct PatientClock: Clock {
    package struct Instant: InstantProtocol {
        fileprivate var sinceStart: Duration

        package func advanced(by duration: Duration) -> Instant { Instant(sinceStart: sinceStart + duration) }
        package func duration(to other: Instant) -> Duration { other.sinceStart - sinceStart }
        package static func < (a: Instant, b: Instant) -> Bool { a.sinceStart < b.sinceStart }
    }

    private let start = ContinuousClock.now

    package init() {}

    package var now: Instant { Instant(sinceStart: start.duration(to: .now) / 100) }
    package var minimumResolution: Duration { .nanoseconds(1) }

    package func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await Task.sleep(until: start.advanced(by: deadline.sinceStart * 100), clock: .continuous)
    }
}
