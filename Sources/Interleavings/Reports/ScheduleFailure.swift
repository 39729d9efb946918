/// A failing schedule, shrunk, with a trace of its execution and the line that runs it again.
public struct ScheduleFailure: Error, Sendable, CustomStringConvertible {
    /// The failure: an error of the scenario, or an ``ExplorationProblem``.
    public let underlying: any Error
    /// The shrunk schedule.
    public let schedule: Schedule
    /// Which schedule of the exploration failed, from 1.
    public let number: Int
    /// How many schedules were planned; `nil` if the strategy cannot tell.
    public let planned: Int?
    /// The strategy's name.
    public let strategy: String
    /// The seed of this schedule; `nil` if the strategy does not use one.
    public let seed: UInt64?
    /// What ran when, under the shrunk schedule.
    public let trace: Trace
    let settings: Settings

    /// The line that runs this schedule again.
    public var replayLine: String {
        var arguments = [".replay(\"\(schedule)\")"]
        if settings.time != .whenIdle { arguments.append("time: .\(settings.time)") }
        if settings.granularity != .jobs { arguments.append("granularity: .\(settings.granularity)") }
        if settings.stepLimit != Settings().stepLimit { arguments.append("stepLimit: \(settings.stepLimit)") }
        return "try await explore(\(arguments.joined(separator: ", "))) { simulation in …"
    }

    /// The whole report: the failure, the diagram, and how to run the schedule again.
    public var description: String {
        let reason = PlainText.clean("\(underlying)", keepsLines: true)
        let picture = trace.steps.isEmpty ? "" : "\n\(diagram)\n"
        return """
            \(heading): \(reason)
            \(picture)
            To see it again, in a \(Self.build):
                \(replayLine)
            """
    }

    /// The report's first words: the schedule and how it was chosen.
    var heading: String {
        let planned = planned.map { " of \($0)" } ?? ""
        let seed = seed.map { ", seed \($0)" } ?? ""
        return "Schedule \(number)\(planned) (\(strategy)\(seed)) failed"
    }

    /// Schedules fit one build configuration: the optimizer removes suspensions.
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
    /// The execution as text for a terminal: a column for each task, queue or thread, and time downwards.
    ///
    /// Unnamed tasks that logged nothing have no column. Each access draws it again.
    public var diagram: String { Diagram(trace, error: underlying).text }

    /// The execution as a self-contained SVG image, for light and dark pages.
    ///
    /// Write it to a file, or attach it to a test's issue. Each access draws it again.
    public var svg: String {
        Diagram(trace, error: underlying).svg(caption: "\(heading). In a \(Self.build): .replay(\"\(schedule)\")")
    }
}
