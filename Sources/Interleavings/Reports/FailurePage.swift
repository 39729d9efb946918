/// A page that walks through a failing schedule, step by step, next to the nearest schedule that passes.
///
/// It is one HTML file that loads nothing: its policy forbids that. Texts of the code under test are only ever shown as text.
package struct FailurePage: Sendable {
    private let failure: ScheduleFailure
    private let command: String?

    /// - Parameter command: The command that runs the failing test again; `nil`: it isn't known.
    package init(_ failure: ScheduleFailure, command: String? = nil) {
        self.failure = failure
        self.command = command
    }

    /// The whole file.
    package var html: String {
        Self.document(
            title: failure.heading, reason: "\(failure.underlying)", blame: failure.blame, json: data.text,
            report: failure.text)
    }

    /// The page's data.
    var data: JSON {
        let shell = command.map { "\(failure.settings.assignments)\(failure.schedule)' \($0)" }
        let replays = [failure.replayLine, shell].compactMap(\.self)
        let problem = failure.underlying as? ExplorationProblem
        let final = problem.flatMap { Diagram.finalTexts[$0.code] }
        let last = final.flatMap { text in problem?.tasks.map { (task: $0, text: text) } } ?? []
        return .object([
            ("replay", .array(replays.map { .text($0) })),
            ("program", program),
            ("schedule", .text(failure.schedule)),
            ("failing", run(failure.trace, last: last)),
            ("passing", passing),
            ("parting", parting.map { .number($0) } ?? .null),
            ("verdict", .text(verdict)), ("functions", .text(functions)),
        ])
    }

    private var passing: JSON {
        guard case .found(_, let trace) = failure.nearestPass else { return .null }
        return run(trace, last: [])
    }

    /// The generated program, and the argument for exploring it again.
    private var program: JSON {
        guard let program = failure.program, let words = failure.programInWords else { return .null }
        let tasks = words.tasks.map { task in
            JSON.object([("name", .text(task.name)), ("operations", .array(task.operations.map { .text($0) }))])
        }
        return .object([
            ("heading", .text(words.heading)), ("tasks", .array(tasks)),
            ("replay", .text("programs: .replay(\"\(program)\")")),
        ])
    }

    /// The first step at which the two executions differ; `nil`: there is nothing to compare.
    var parting: Int? {
        guard case .found(_, let trace) = failure.nearestPass else { return nil }
        let steps = failure.trace.steps
        return zip(steps, trace.steps).first { $0 != $1 }?.0.number ?? min(steps.count, trace.steps.count) + 1
    }

    /// The result of the search for a passing schedule, in words.
    private var verdict: String {
        switch failure.nearestPass {
        case .found(let schedule, _):
            "The nearest schedule that passes is \"\(schedule)\"\(schedule.choices.isEmpty ? ", the usual order" : "")."
        case .none(let tried):
            "No passing schedule to compare with: \(tried) with one or two other choices were tried, and none passes."
        case .unsought: "No passing schedule to compare with: this one can't be repeated, or there was no search."
        }
    }

    /// A note on the functions of the steps, in words.
    private var functions: String {
        guard let doors = failure.settings.doors else {
            return "Functions are named on Linux, in programs that link InterleavingsEverything."
        }
        return !doors.namesFunctions
            ? "Functions can't be named: the program has no symbols, or its runtime lays out tasks differently."
            : "A step's function is the one in which its task continues; a task's first step and a queue's block have none."
    }

    /// The innermost function of the program in which a step's task continues; `nil`: unknown.
    private func function(of step: Trace.Step, in trace: Trace) -> String? {
        guard let doors = failure.settings.doors, doors.namesFunctions, trace.functions.indices.contains(step.number - 1) else {
            return nil
        }
        return trace.functions[step.number - 1].lazy.compactMap(doors.functionName).first
    }

    /// How many of a long execution's steps are shown: the first ones, the last ones, and those before and after the parting.
    private static let (first, last, near) = (200, 100, 20)

    /// The most informative steps; a livelock has thousands more.
    private func shown(of steps: [Trace.Step]) -> [Trace.Step] {
        let parting = parting ?? 0
        return steps.filter { step in
            step.number <= Self.first || step.number > steps.count - Self.last || abs(step.number - parting) <= Self.near
        }
    }

    private func run(_ trace: Trace, last: [(task: String, text: String)]) -> JSON {
        var short = trace
        short.steps = shown(of: trace.steps)
        let steps = short.steps.map { step in
            JSON.object([
                ("number", .number(step.number)), ("task", .text(step.task)), ("place", .text(step.place)),
                ("time", .text(PlainText.time(step.time))), ("candidates", .number(step.candidates.count)),
                ("pick", .number(step.pick)), ("function", function(of: step, in: trace).map { .text($0) } ?? .null),
                ("passedOver", step.passedOver.map { .text($0) } ?? .null),
                ("events", .array(step.events.map(Self.event))),
            ])
        }
        return .object([
            ("lanes", .array(Self.lanes(of: short, and: last.map(\.task)).map { .text($0) })),
            ("count", .number(trace.steps.count)), ("steps", .array(steps)),
            ("last", .array(last.map { .object([("task", .text($0)), ("text", .text($1))]) })),
        ])
    }

    private static func event(_ event: Trace.Event) -> JSON {
        .object([("task", .text(event.task)), ("text", .text(event.text)), ("kind", .text(event.kind.name))])
    }

    /// The tasks, queues and threads that ran or were passed over, in the order in which they were named.
    private static func lanes(of trace: Trace, and others: [String]) -> [String] {
        let seen = trace.steps.flatMap { [$0.task, $0.passedOver ?? ""] + $0.events.map(\.task) } + others
        var names: Set<String> = [""]
        return (trace.names.filter(Set(seen).contains) + seen).filter { names.insert($0).inserted }
    }
}

/// A value as JSON, for a script's data within HTML.
indirect enum JSON: Sendable {
    case null
    case number(Int)
    /// A text of any length and with any characters, which is cleaned when written.
    case text(String)
    case array([JSON])
    case object([(String, JSON)])

    /// The value written out, without a character that could end the element around it.
    var text: String {
        switch self {
        case .null: "null"
        case .number(let number): "\(number)"
        case .text(let text): "\"\(PlainText.clean(text, keepsLines: true).unicodeScalars.map(Self.escaped).joined())\""
        case .array(let values): "[\(values.map(\.text).joined(separator: ",\n"))]"
        case .object(let members): "{\(members.map { "\"\($0)\":\($1.text)" }.joined(separator: ","))}"
        }
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\"", "\\": "\\\(scalar)"
        case "<", ">", "&", "\u{0}"..."\u{1F}":
            "\\u00\(scalar.value < 16 ? "0" : "")\(String(scalar.value, radix: 16))"
        default: String(scalar)
        }
    }
}
