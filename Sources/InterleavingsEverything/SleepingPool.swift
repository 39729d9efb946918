#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
@_spi(ExperimentalScheduling) import _Concurrency
import Interleavings

/// The pool of an execution, which also schedules the sleeps of its tasks.
///
/// Since swiftlang/swift#80266 a task's executor ends its sleeps if it is a `SchedulingExecutor`. All sleeps arrive here,
/// including those inside actors, since their tasks prefer this executor, too. SE-0505 proposes the protocol. Where it is not
/// available, the check reports that sleeps aren't driven.
final class SleepingPool: TaskExecutor, SchedulingExecutor {
    private let session: DrivenSession
    private let lane: Int

    init(_ session: DrivenSession, lane: Int) {
        self.session = session
        self.lane = lane
    }

    func enqueue(_ job: consuming ExecutorJob) {
        session.engine.enqueue(job, lane: lane, on: self, in: session)
    }

    func enqueue<C: Clock>(_ job: consuming ExecutorJob, at instant: C.Instant, tolerance: C.Duration?, clock: C) {
        sleep(job, clock.now.duration(to: instant))
    }

    func enqueue<C: Clock>(_ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C) {
        sleep(job, delay)
    }

    /// A clock with its own type of duration isn't the runtime's, and ends its sleeps itself.
    private func sleep(_ job: consuming ExecutorJob, _ delay: some DurationProtocol) {
        session.engine.sleep(job, for: delay as? Duration ?? .zero)
    }
}
#endif
