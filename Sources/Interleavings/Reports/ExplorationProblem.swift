public import TokenServiceConcurrency

/// A problem that the explorer finds in an execution, as opposed to an error that the scenario throws.
public struct ExplorationProblem: Error, Sendable, Hashable, Described {
    /// The kinds of problems.
    package enum Code: String, Sendable {
        /// ``Simulation/require(_:_:fileID:line:)`` found its condition false.
        case requirement
        /// A spawned task threw an error, and nothing asked for its ``SpawnedTask/value`` or ``SpawnedTask/result``.
        case unreadError = "unread error"
        /// A spawned task threw a `CancellationError` although it was not cancelled, and nothing read the error.
        case uncausedCancellation = "uncaused cancellation"
        /// Nothing can run and no timer is pending, but a task hasn't finished.
        case deadlock
        /// The step limit was reached.
        case livelock
        /// A task awaited or began something that the explorer doesn't drive.
        case escape
        /// A step blocked its thread.
        case blockedThread = "blocked thread"
        /// The same choices led to a different execution.
        case nondeterminism
        /// The explorer cannot drive all code in this program.
        case shutDoor = "shut door"
        /// A replay stopped before the step that it was given, without a failure of the code.
        case stopped
        /// A replayed schedule picks a candidate that does not exist.
        case divergence
        /// Schedules left too many tasks asleep, whose memory is never freed.
        case sleepers = "too many sleepers"
        /// The exploration would pass whatever the code does: it has no schedule, or its scenario starts nothing.
        case nothingToExplore = "nothing to explore"
    }

    /// The kind of problem.
    package let code: Code
    /// The names of the tasks that wait, spin, escaped or threw.
    package let tasks: [String]
    /// The particulars of this problem.
    package private(set) var detail: String
    /// Where the requirement is, or where the task that threw was spawned, such as `CacheTests/PriceCacheTests.swift:31`; empty
    /// for other problems.
    package let place: String

    /// The functions in which the tasks wait, by their names, as far as they are known.
    private var whereabouts: [String: String] = [:]
    /// The advice if everything is driven; `nil`: the advice to use the simulation's executor, clock and queues.
    private var remedy: String?

    package init(_ code: Code, tasks: [String] = [], detail: String = "", place: String = "", remedy: String? = nil) {
        self.remedy = remedy
        self.code = code
        self.tasks = tasks
        self.detail = detail
        self.place = place
    }

    /// The same problem with the functions in which its tasks wait.
    func adding(_ whereabouts: [String: String]) -> ExplorationProblem {
        var problem = self
        problem.whereabouts = whereabouts
        return problem
    }

    /// The same problem with other particulars.
    func detailed(_ detail: String) -> ExplorationProblem {
        var problem = self
        (problem.detail, problem.remedy) = (detail, nil)
        return problem
    }

    /// The same problem with advice: for code driven without seams, or else about the seams to use.
    func advising(on settings: Settings) -> ExplorationProblem {
        let driving = settings.driving
        var problem = self
        if code == .escape, settings.test == .trait {
            problem.remedy = (remedy ?? Self.remedies) + " '.explored(schedules: 0)' leaves a test as it is."
        }
        guard driving.isEverything, remedy == nil else { return problem }
        switch code {
        case .nondeterminism:
            problem.remedy =
                " Look for the order of a Set or Dictionary, randomness, an address, state left by an earlier run such as a"
                + " global variable or 'static let shared', real time that isn't driven, and work on a thread."
        case .blockedThread where driving.needsThreads:
            problem.remedy =
                " a plain lock or a condition that another task holds, which cannot run meanwhile: don't hold a lock across a wait"
                + " for a queue, a group or a semaphore."
        case .blockedThread:
            problem.remedy =
                " a semaphore, a queue or a lock that another task holds, which cannot run meanwhile. Others do if the queues are"
                + " driven, too: 'driving: .everythingAndQueues'."
        default: break
        }
        return problem
    }

    /// The problem and its remedy.
    package var text: String {
        let names = tasks.map { $0.at(code == .deadlock ? whereabouts : [:]) }.joined(separator: ", ")
        return switch code {
        case .requirement, .stopped: detail
        case .unreadError:
            "Unread error: \(names) threw \"\(detail)\", and nothing read it. Read its 'value' or 'result', catch the error in"
                + " the task, or allow it with spawn(…).allowingError()."
        case .uncausedCancellation:
            "Uncaused cancellation: \(names) threw a CancellationError, but nothing had cancelled it. Its caller would treat that as"
                + " its own cancellation. Find the code that throws the error itself or passes on another task's cancellation."
        case .deadlock:
            "Deadlock: nothing can run and no timer is pending, but these have not ended: \(names)."
                + (detail.isEmpty
                    ? " Or one of them awaits something slow outside the simulation"
                        + (remedy.map { ". \($0)" } ?? ", such as Task.sleep: use simulation.clock.")
                    : detail)
        case .livelock:
            "Livelock: no end after \(detail) steps. These tasks ran last: \(names). Either they never end, or they yield until a"
                + " deadline, but time moves only when nothing can run: let them sleep. Or the scenario is long: raise"
                + " 'stepLimit'."
        case .escape:
            "Escape: \(detail). The explorer does not drive that, so a replay may go another way."
                + " Waiting at that moment: \(names). \(remedy ?? Self.remedies)"
        case .blockedThread where detail.isEmpty: "Blocked: the system has no thread for a step of \(names)."
        case .blockedThread:
            "Blocked: a step of \(names) has not ended after \(detail) seconds. Either it computes without end, or it waits for"
                + (remedy ?? Self.blockedRemedy)
        case .nondeterminism:
            "The same choices led to another execution: \(detail). Something in the scenario differs from run to run."
                + (remedy ?? Self.differenceRemedy)
        case .shutDoor:
            "A runtime hook is missing: \(detail). So this program can't be fully controlled. Use 'driving: .preferred', and"
                + " give the code under test the simulation's executor and clock. If the error remains, don't link"
                + " InterleavingsEverything."
        case .divergence:
            "The schedule does not fit: \(detail). Replay it with the scenario, the granularity, the time model and the"
                + " build configuration (debug or release) that it was found with; if the code has changed since, explore again."
        case .sleepers:
            "Too many sleepers: schedules in this process have ended with \(detail) tasks asleep, each of which keeps about 5 KB and"
                + " what it holds. The last one is \(names). Cancel such a task before the test ends, or run fewer schedules."
        case .nothingToExplore: "Nothing to explore: \(detail)."
        }
    }

    private static let blockedRemedy =
        " a lock, a semaphore or a queue that another task holds, which cannot run meanwhile: use InterleavedLock,"
        + " InterleavedSemaphore or simulation.serialQueue."

    private static let differenceRemedy =
        " Most likely a Task {} or Task.detached {} runs outside: give it the argument 'executorPreference:"
        + " simulation.taskExecutor'. If there is none, look for real time, randomness, the order of a Set or Dictionary,"
        + " an address, state left by an earlier run, or a plain lock that a thread holds at a point: use InterleavedLock."

    private static let remedies =
        "On Linux, link InterleavingsEverything and pass 'driving: .everything': it drives plain tasks, sleeps and @MainActor. Or"
        + " give the code seams. Use simulation.clock instead of Task.sleep and real clocks. Give Task {} and Task.detached {} the argument"
        + " 'executorPreference: simulation.taskExecutor'. Use simulation.serialQueue or concurrentQueue instead of"
        + " DispatchQueues, an actor with simulation.actorExecutor instead of @MainActor, and scripted answers instead of"
        + " networks and files."
}

extension String {
    /// The quoted name of a task, with the function in which it waits, if that is known.
    func at(_ whereabouts: [String: String]) -> String { "'\(self)'\(whereabouts[self].map { " in \($0)" } ?? "")" }
}
