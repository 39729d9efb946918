public import TokenServiceConcurrency

/// A failing schedule, shrunk, with a trace of its execution and the line that runs it again.
public struct ScheduleFailure: Error, Sendable, Described {
    /// The failure: an error of the scenario, or an ``ExplorationProblem``.
    public let underlying: any Error
    /// The shrunk schedule, as ``Strategy/replay(_:stoppingAt:)`` takes it.
    public var schedule: String { Schedule(choices: choices).text }
    /// Its choices, without the zeros at the end.
    package let choices: [Int]
    /// The number of the failed schedule, counted from 1.
    package let number: Int
    /// How many schedules were planned; `nil` if the strategy cannot tell.
    package let planned: Int?
    /// The strategy's name.
    package let strategy: String
    /// The exploration's seed, with which the strategy runs the same schedules; `nil` if it does not use one.
    package let seed: UInt64?
    /// The steps of the execution under the shrunk schedule.
    package let trace: Trace
    /// The generated program that failed, shrunk; `nil`: the scenario is the test's own.
    package internal(set) var program: Program?
    /// The same program for a person; `nil` if there is none.
    var programInWords: ProgramInWords?
    let settings: Settings
    var minimality = Shrunk.Minimality.unknown
    var nearestPass = NearestPass.unsought
    /// The suspension that another task crossed, if that probably caused the failure.
    var crossing: Crossing?
    /// What the test guesses; `nil`: nothing that is known.
    var guess: Guess?
    /// The tasks that had not ended although nothing could run, because they waited for something unknown to the explorer,
    /// and where they wait.
    var doubted: [String] = []
    /// How many threads stay asleep after it.
    var parkedThreads = 0

    /// Whether no schedule with fewer switches fails in the same way: all were run.
    package var isMinimal: Bool { if case .proven = minimality { true } else { false } }

    /// When the schedule's clock moved.
    package var time: TimeModel { settings.time }

    /// The line that runs this schedule again.
    package var replayLine: String {
        let remark = choices.isEmpty ? "  // the usual order" : ""
        return "\(settings.replayHead)\(schedule)\(settings.replayTail)\(remark)"
    }

    /// The whole report: the failure, the diagram, and how to run the schedule again.
    package var text: String {
        let reason = PlainText.clean("\(underlying)", keepsLines: true)
        let picture = trace.steps.isEmpty ? "" : "\n\(diagram)\n"
        let program = programInWords.map { "\($0.heading):\n\($0.lines.map { "    \($0)\n" }.joined())" } ?? ""
        return """
            \(program)\(heading): \(reason)
            \(liberties)\(blame.map { "\n\($0)\n" } ?? "")\(picture)
            \([hint, doubt, parking, proof].compactMap(\.self).map { "\($0)\n\n" }.joined())\(again), in a \(Self.build):
                \(replayLine)
            """
    }

    /// What the schedule does that the runtime does only on a loaded machine, or never: a line each.
    private var liberties: String {
        [trace.earlyTimer, trace.overtaking].compactMap { $0.map { PlainText.clean($0) + "\n" } }.joined()
    }

    /// The sentences about a test that guesses, or a task that ran during another one's `await`; `nil`: no cause is known.
    package var blame: String? {
        if let guess { return PlainText.clean(guess.sentences) }
        return crossing.flatMap { crossing in settings.doors.map { PlainText.clean(crossing.sentence($0.line)) } }
    }

    /// The introduction to the replay line: an escape may not recur, and a stopped replay can continue.
    private var again: String {
        switch (underlying as? ExplorationProblem)?.code {
        case .escape: "To try the same schedule"
        case .stopped: "To see it to its end"
        default: "To see it again"
        }
    }

    /// Advice for an error that says little; `nil` if none is needed.
    private var hint: String? {
        guard String(reflecting: type(of: underlying)) == "Testing.ExpectationFailedError" else { return nil }
        return "A #require failed. Add the product InterleavingsTesting to the test target: the report then says which, and an"
            + " #expect that fails in a scenario is a failing schedule too."
    }

    /// Another possible cause: an escape that was too slow to be noticed; `nil` if that is ruled out.
    private var doubt: String? {
        let code = (underlying as? ExplorationProblem)?.code
        let names = doubted.filter { !$0.hasPrefix("'\(settings.rootName)'") }.joined(separator: ", ")
        guard !names.isEmpty, code == nil || code == .requirement else { return nil }
        let (example, remedy) =
            settings.driving.isEverything
            ? ("a thread or a network", "give the code a stub of it") : ("Task.sleep", "use simulation.clock")
        return "Not ended at that time, though nothing could run: \(names). If one of them awaits something slow outside the"
            + " simulation, such as \(example), that may be the cause: \(remedy)."
    }

    /// The threads that the schedule leaves behind; `nil`: none.
    private var parking: String? {
        switch parkedThreads {
        case 0: nil
        case 1: "One thread waits for what can't come any more; it and its locks stay as they are until the process ends."
        default:
            "\(parkedThreads) threads wait for what can't come any more; they and their locks stay as they are until the process ends."
        }
    }

    /// The result of trying schedules with fewer switches; `nil`: none were tried, or the schedule has none.
    private var proof: String? {
        let switches = choices.count { $0 > 0 }
        return switch minimality {
        case .proven(let tried) where tried > 1:
            "No schedule with fewer switches fails here: all \(tried) were run."
        case .proven where switches == 1: "One switch is needed: the usual order doesn't fail here."
        case .upTo(let most, let tried):
            "No schedule with at most \(most) switch\(most == 1 ? "" : "es") fails here: \(tried) were run. One with fewer than"
                + " the present \(switches) may."
        case .proven, .unknown: nil
        }
    }

    /// The report's first words: the schedule and how it was chosen.
    var heading: String {
        let planned = planned.map { " of \($0)" } ?? ""
        let seed = seed.map { ", seed \($0)" } ?? ""
        let hasStopped = (underlying as? ExplorationProblem)?.code == .stopped
        let model = time == .whenIdle ? "" : ", time \(time)"
        return "Schedule \(number)\(planned) (\(strategy)\(seed)\(model)) \(hasStopped ? "stopped" : "failed")"
    }

    /// A schedule is valid for one build configuration: the optimizer removes suspensions.
    static var build: String {
        #if DEBUG
        let configuration = "debug"
        #else
        let configuration = "release"
        #endif
        #if os(Linux)
        let platform = "Linux"
        #elseif os(macOS)
        let platform = "macOS"
        #elseif os(Windows)
        let platform = "Windows"
        #else
        let platform = "simulator or device"
        #endif
        #if arch(arm64)
        let architecture = "arm64"
        #elseif arch(x86_64)
        let architecture = "x86_64"
        #else
        let architecture = "another architecture"
        #endif
        return "\(configuration) build on \(platform) (\(architecture))"
    }
}

extension ScheduleFailure {
    /// How to replay the schedule without editing the test, up to the command that runs it.
    package var variables: String { "\(settings.variables)\(schedule)'" }
}

extension Settings {
    /// How to replay a schedule without editing the test, up to the choices.
    var variables: String { "Or, without editing: \(assignments)" }

    /// The variables that replay a schedule, up to the choices.
    var assignments: String {
        let time = time == .anytime ? "INTERLEAVINGS_TIME=anytime " : ""
        let program = program.map { "INTERLEAVINGS_PROGRAM='\($0)' " } ?? ""
        return "\(time)\(program)INTERLEAVINGS_REPLAY='\(number > 1 ? "\(number):" : "")"
    }

    /// The line that replays a schedule, up to the choices.
    var replayHead: String {
        if let test { return "\(test.rawValue)replay: \"" }
        let call = program.map { "exploreOperations(…, programs: .replay(\"\($0)\"), schedules: " } ?? "explore("
        return "try await \(call).replay(\""
    }

    /// The line that replays a schedule, after the choices.
    var replayTail: String {
        test.map { "\"\(replayArguments)\($0 == .trait ? "))" : ") …")" }
            ?? "\")\(replayArguments)) \(program == nil ? "{ simulation in …" : "…")"
    }

    /// The arguments of a replay that differ from the defaults.
    private var replayArguments: String {
        var arguments = ""
        if time != .whenIdle { arguments += ", time: .\(time)" }
        if ordering != .arrival { arguments += ", ordering: .\(ordering)" }
        if machine != (test == nil ? .fair : .busy) { arguments += ", machine: .\(machine)" }
        if granularity != .jobs { arguments += ", granularity: .\(granularity)" }
        if let name = driving.name, test == nil || driving.needsThreads { arguments += ", driving: .\(name)" }
        if stepLimit != Settings().stepLimit { arguments += ", stepLimit: \(stepLimit)" }
        return arguments
    }
}

extension ScheduleFailure {
    /// The execution as text for a terminal: a column for each task, queue or thread, and time downwards.
    ///
    /// Unnamed tasks that logged nothing have no column. Each access draws it again.
    package var diagram: String { Diagram(trace, error: underlying).text }

    /// The execution as a self-contained SVG image, for light and dark pages.
    ///
    /// Write it to a file, or attach it to a test's issue. Each access draws it again.
    package var svg: String {
        Diagram(trace, error: underlying).svg(
            caption:
                "\(heading). In a \(Self.build): .replay(\"\(schedule)\")\(choices.isEmpty ? ", the usual order" : "")")
    }
}
