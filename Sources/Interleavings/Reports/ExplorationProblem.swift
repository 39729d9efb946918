/// What went wrong in an execution by itself, without an error of the scenario's own.
public struct ExplorationProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of problems; there may be more in later versions.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// ``Simulation/require(_:_:)`` found its condition false.
        public static let requirement = Code(description: "requirement")
        /// Nothing can run and no timer is pending, but somebody has not ended.
        public static let deadlock = Code(description: "deadlock")
        /// The step limit was reached.
        public static let livelock = Code(description: "livelock")
        /// Somebody awaited something that the explorer does not drive.
        public static let escape = Code(description: "escape")
        /// A step blocked its thread.
        public static let blockedThread = Code(description: "blocked thread")
        /// The same choices led to another execution.
        public static let nondeterminism = Code(description: "nondeterminism")
        /// A schedule to replay asks for a choice that is not there.
        public static let divergence = Code(description: "divergence")

        /// The code's name.
        public let description: String
    }

    /// The kind of problem.
    public let code: Code
    /// Whom it concerns: those who wait, spin or escaped.
    public let tasks: [String]
    /// What is particular to it.
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
                    ? " Or one of them awaits something outside that takes long, such as Task.sleep: use simulation.clock."
                    : detail)
        case .livelock:
            "No end after \(detail) steps. Those that ran last: \(names). Either they run for ever, or the scenario is long:"
                + " raise 'stepLimit'."
        case .escape:
            "Escape: \(detail). It awaited something that the explorer does not drive, so no schedule can be replayed."
                + " Waiting then: \(names). \(Self.mending)"
        case .blockedThread:
            "Blocked: a step of \(names) has not come back for \(detail) seconds. It waits for a lock, a semaphore or a queue"
                + " that somebody else has, who is not picked meanwhile: use InterleavedLock or simulation.serialQueue."
        case .nondeterminism:
            "The same choices led to another execution: \(detail). Something in the scenario differs from run to run: real"
                + " time, randomness, the order of a Set or Dictionary, an address, or state left by the run before."
        case .divergence:
            "The schedule does not fit: \(detail). Replay it with the scenario, the granularity, the time model and the"
                + " build configuration (debug or release) that it was found with; if the code has changed since, explore anew."
        default: code.description
        }
    }

    private static let mending =
        "Instead of Task.sleep and real clocks use simulation.clock; of Task {} and Task.detached {} give them"
        + " 'executorPreference: simulation.taskExecutor'; of DispatchQueues simulation.serialQueue or concurrentQueue; of"
        + " @MainActor an actor with simulation.actorExecutor; of networks and files something scripted."
}
