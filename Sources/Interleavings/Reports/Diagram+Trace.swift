extension Diagram {
    /// Draws a recorded execution.
    init(_ trace: Trace, error: any Error) {
        let (moments, names) = Self.placed(Self.moments(of: trace, error: error), of: trace)
        let numbers = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0) })

        var rows: [Row] = []
        var births: [Int?] = names.map { _ in nil }
        var ends: [Int?] = births
        for moment in moments {
            guard let name = moment.name else {
                rows.append(.time(moment.time, isDecisive: moment.mark == .decisive))
                continue
            }
            guard let column = numbers[name] else { continue }
            let passedOver = moment.passedOver.flatMap { numbers[$0] }
            Self.append(moment, of: column, passedOver: passedOver, to: &rows)
            for index in [column, passedOver ?? column] { births[index] = births[index] ?? max(rows.count - 1, 0) }
            if moment.isEnd { ends[column] = rows.count }
        }
        let columns = names.indices.map { index in
            let birth = births[index] ?? 0
            return Column(name: PlainText.clean(names[index]), life: birth..<max(ends[index] ?? rows.count, birth))
        }
        self.init(columns: columns, rows: rows, reason: PlainText.clean(PlainText.beginning(of: error), keepsLines: true))
        hasStopped = (error as? ExplorationProblem)?.code == .stopped
    }

    private static func append(_ moment: Moment, of column: Int, passedOver: Int?, to rows: inout [Row]) {
        guard moment.texts.isEmpty, let step = moment.step else {
            let texts = moment.texts.map { PlainText.clean($0) }
            let action = Action(step: moment.step, column: column, mark: moment.mark, texts: texts, passedOver: passedOver)
            return rows.append(.action(action))
        }
        // The scenario mostly waits for the other tasks.
        if moment.name == scenario { return }
        // Silent steps share a row, unless a task would appear in it twice or out of order.
        if case .silence(let steps, let columns) = rows.last, let last = columns.last,
            last < column || moment.name == others && columns == [column]
        {
            let columns = last < column ? columns + [column] : columns
            rows[rows.count - 1] = .silence(steps: steps.lowerBound...step, columns: columns)
        } else {
            rows.append(.silence(steps: step...step, columns: [column]))
        }
    }
}

extension Diagram {
    /// The action of one task in a step, or a step of time; columns and rows are made from moments.
    struct Moment {
        /// The step's number for the first moment of a step, otherwise `nil`.
        let step: Int?
        /// The task's name; `nil`: time moved on.
        var name: String?
        let time: Duration
        var mark = Mark.usual
        /// The task's logged texts.
        var texts: [String] = []
        var passedOver: String?
        /// Whether the task ended.
        var isEnd = false
    }

    /// The scenario's task, whose start and end are not shown.
    static let scenario = "scenario"
    /// Returns the moments of an execution, up to the failure.
    ///
    /// - Parameter error: The failure; in a deadlock, for example, the waiting tasks are marked.
    static func moments(of trace: Trace, error: any Error) -> [Moment] {
        let moments = trace.steps.flatMap { Self.moments(of: $0) }
        guard let problem = error as? ExplorationProblem, let last = trace.steps.last else { return moments }
        guard let text = finalTexts[problem.code] else { return moments }
        return moments + problem.tasks.map { Moment(step: nil, name: $0, time: last.time, mark: .failure, texts: [text]) }
    }

    /// The last texts of the tasks that a problem is about.
    static let finalTexts: [ExplorationProblem.Code: String] = [
        .deadlock: "waits forever", .livelock: "does not end", .escape: "still waits", .blockedThread: "blocks its thread",
        .unreadError: "nothing read its error", .uncausedCancellation: "nothing cancelled it",
        .stopped: "would go on",
    ]

    /// Returns one moment for each run of events of one task.
    private static func moments(of step: Trace.Step) -> [Moment] {
        guard !step.isTime else {
            return [Moment(step: step.number, name: nil, time: step.time, mark: step.pick > 0 ? .decisive : .usual)]
        }
        var moments: [Moment] = []
        func add(_ name: String, _ text: String?, _ kind: Trace.Event.Kind = .event) {
            let isFailure = kind == .failure
            if moments.last?.name != name || isFailure && moments.last?.texts.isEmpty == false {
                moments.append(Moment(step: moments.isEmpty ? step.number : nil, name: name, time: step.time))
            }
            let last = moments.count - 1
            if let text { moments[last].texts.append(text) }
            moments[last].isEnd = kind == .end
            if isFailure { moments[last].mark = .failure }
        }
        add(step.task, nil)
        for event in step.events {
            add(event.task.isEmpty ? step.task : event.task, isNews(event, in: step) ? event.text : nil, event.kind)
            if event.kind == .failure { break }
        }
        if !moments.isEmpty, moments[0].name == step.task, step.place != "pool", step.place != step.task {
            let first = moments[0].texts.first.map { ": \($0)" } ?? ""
            moments[0].texts = ["on \(step.place)\(first)"] + moments[0].texts.dropFirst()
        }
        if step.pick > 0 {
            if moments[0].texts.isEmpty { moments[0].texts = ["continues"] }
            if moments[0].mark == .usual { moments[0].mark = .decisive }
            moments[0].passedOver = step.passedOver.flatMap { $0 == moments[0].name ? nil : $0 }
        }
        return moments
    }

    /// Whether an event is shown: a start only if the task does nothing else in the step.
    private static func isNews(_ event: Trace.Event, in step: Trace.Step) -> Bool {
        switch event.kind {
        case .start: event.task != scenario && !step.events.contains { $0.task == event.task && $0.kind != .start }
        case .end: event.task != scenario
        default: !event.text.isEmpty
        }
    }
}
