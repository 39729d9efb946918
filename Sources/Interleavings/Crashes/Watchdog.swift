import Dispatch
import TokenServiceConcurrency

/// Ends an exploration whose step never returns.
///
/// A step on the exploration's own thread can't be stopped. So the exploration is abandoned: its caller gets a failure with the
/// schedule, and the thread is left running.
final class Watchdog: Sendable {
    /// The current execution, and the number of its schedule.
    struct Moment: Sendable {
        let engine: Engine
        let describe: @Sendable (any Error) -> ScheduleFailure
    }

    /// The last observation.
    private struct Sight: Equatable {
        var engine: ObjectIdentifier?
        var steps = 0
        var count = 0
    }

    private let moment = Lock<Moment?>(nil)
    private let sight = Lock(Sight())
    private let seconds: Double
    /// The number of checks within the time that a step may take.
    ///
    /// It counts checks, not seconds: while a debugger has stopped the process, there are none.
    private static let looks = 20

    /// Controlled threads detect a late step themselves; after twice that time, the exploration's own thread must be stuck.
    init(_ settings: Settings) {
        seconds = settings.stepSeconds * (settings.usesThreads ? 2 : 1)
    }

    var present: Moment? { moment.withLock { $0 } }

    /// Watches an execution; `nil`: none, while the exploration does something else.
    ///
    /// - Returns: The execution that it watched before.
    func watch(_ new: Moment?) -> Moment? {
        moment.withLock { moment in
            defer { moment = new }
            return moment
        }
    }

    /// Runs an exploration on its own thread, and gives it up if a step never returns.
    func run<Value: Sendable>(
        on executor: some TaskExecutor, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        let result = SingleResult<Value>()
        let task = Task(executorPreference: executor) { result.complete(with: Result { try work() }) }
        let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "interleavings.watchdog"))
        let interval = seconds / Double(Self.looks)
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.setEventHandler {
            guard let failure = self.look() else { return }
            task.cancel()
            result.complete(with: .failure(failure))
        }
        timer.activate()
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await result.value()
        } onCancel: {
            task.cancel()
        }
    }

    /// - Returns: The failure, if the same step has been running for too long.
    private func look() -> ScheduleFailure? {
        guard let moment = present else { return nil }
        let steps = moment.engine.state.withLock { $0.steps }
        let isLate = sight.withLock { sight in
            let isSame = sight.engine == ObjectIdentifier(moment.engine) && sight.steps == steps
            sight = Sight(engine: ObjectIdentifier(moment.engine), steps: steps, count: isSame ? sight.count + 1 : 0)
            return sight.count >= Self.looks
        }
        guard isLate else { return nil }
        let name = moment.engine.state.withLock { state in
            // If the step ends after all, the execution ends with it.
            if state.phase == .running { state.phase = .windingDown }
            return state.name(of: state.lastTask)
        }
        return moment.describe(ExplorationProblem(.blockedThread, tasks: [name], detail: "\(seconds)"))
    }
}
