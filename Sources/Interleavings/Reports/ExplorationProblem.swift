/// A problem that the explorer finds in an execution, as opposed to an error that the scenario throws.
public struct ExplorationProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of problems; there may be more in later versions.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// ``Simulation/require(_:_:)`` found its condition false.
        public static let requirement = Code(description: "requirement")
        /// Nothing can run and no timer is pending, but a task has not ended.
        public static let deadlock = Code(description: "deadlock")
        /// The step limit was reached.
        public static let livelock = Code(description: "livelock")
        /// A task awaited something that the explorer does not drive.
        public static let escape = Code(description: "escape")
        /// A step blocked its thread.
        public static let blockedThread = Code(description: "blocked thread")
        /// The same choices led to a different execution.
        public static let nondeterminism = Code(description: "nondeterminism")
        /// A replayed schedule picks a candidate that does not exist.
        public static let divergence = Code(description: "divergence")

        /// The code's name.
        public let description: String
    }

    /// The kind of problem.
    public let code: Code
    /// The names of the tasks that wait, spin or escaped.
    public let tasks: [String]
    /// The particulars of this problem.
    public let detail: String

    init(_ code: Code, tasks: [String] = [], detail: String = "") {
        self.code = code
        self.tasks = tasks
        self.detail = detail
    }

    /// What happened, and what to do.
    public var description: String {
        let names = tasks.map { "'\($0)'" }.joined(separator: ", ")
        return switch code {
        case .requirement: detail
        case .deadlock:
            "Deadlock: nothing can run and no timer is pending, but these have not ended: \(names)."
                + (detail.isEmpty
                    ? " Or one of them awaits something slow outside the simulation, such as Task.sleep: use simulation.clock."
                    : detail)
        case .livelock:
            "Livelock: no end after \(detail) steps. These tasks ran last: \(names). Either they never end, or the scenario is"
                + " long: raise 'stepLimit'."
        case .escape:
            "Escape: \(detail). It awaited something that the explorer does not drive, so no schedule can be replayed."
                + " Waiting at that moment: \(names). \(Self.remedies)"
        case .blockedThread:
            "Blocked: a step of \(names) has not ended after \(detail) seconds. It waits for a lock, a semaphore or a queue that"
                + " another task holds, which cannot run meanwhile: use InterleavedLock, InterleavedSemaphore or"
                + " simulation.serialQueue."
        case .nondeterminism:
            "The same choices led to another execution: \(detail). Something in the scenario differs from run to run: real"
                + " time, randomness, the order of a Set or Dictionary, an address, or state left by an earlier run."
        case .divergence:
            "The schedule does not fit: \(detail). Replay it with the scenario, the granularity, the time model and the"
                + " build configuration (debug or release) that it was found with; if the code has changed since, explore again."
        default: code.description
        }
    }

    private static let remedies =
        "Use simulation.clock instead of Task.sleep and real clocks. Give Task {} and Task.detached {} the argument"
        + " 'executorPreference: simulation.taskExecutor'. Use simulation.serialQueue or concurrentQueue instead of"
        + " DispatchQueues, an actor with simulation.actorExecutor instead of @MainActor, and scripted answers instead of"
        + " networks and files."
}
