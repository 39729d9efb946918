/// The diagram of an execution: a column for each task, queue or thread, and rows downwards in the order of time.
struct Diagram: Sendable, Equatable {
    /// A task, a queue or a thread.
    struct Column: Sendable, Equatable {
        let name: String
        /// The rows from its first step to its end.
        var life: Range<Int>
    }

    enum Mark: Sendable {
        case usual
        /// The schedule left the usual order here.
        case decisive
        /// The execution failed here.
        case failure
    }

    /// The actions of one column's task in a step.
    struct Action: Sendable, Equatable {
        let step: Int?
        let column: Int
        let mark: Mark
        var texts: [String]
        /// The column that would have run in the usual order.
        let passedOver: Int?
    }

    enum Row: Sendable, Equatable {
        case action(Action)
        /// Several tasks ran in turn, from left to right, and logged nothing.
        case silence(steps: ClosedRange<Int>, columns: [Int])
        case time(Duration, isDecisive: Bool)
        /// Rows are left out, and the text says how many.
        case gap(String)
    }

    /// The number or numbers of a row's steps.
    static func number(of row: Row) -> String {
        switch row {
        case .action(let action): action.step.map { "\($0)" } ?? ""
        case .silence(let steps, _): steps.count == 1 ? "\(steps.lowerBound)" : "\(steps.lowerBound)–\(steps.upperBound)"
        case .time, .gap: ""
        }
    }

    /// The legend of a diagram without a decisive step.
    var usualOrder: String {
        "The usual order\(hasStopped ? "" : " fails"): a task runs while it can, then the longest-waiting one."
    }

    /// Whether the schedule never left the usual order.
    var isUsual: Bool {
        rows.allSatisfy { row in
            switch row {
            case .action(let action): action.mark != .decisive && action.passedOver == nil
            case .time(_, let isDecisive): !isDecisive
            case .silence, .gap: true
            }
        }
    }

    private(set) var columns: [Column]
    private(set) var rows: [Row]
    /// Why the execution failed.
    let reason: String
    /// Whether it was only stopped.
    var hasStopped = false

    init(columns: [Column], rows: [Row], reason: String) {
        self.columns = columns
        self.rows = rows
        self.reason = reason
        shorten()
    }

    /// How many rows are kept at the beginning and at the end, which are the most informative ones.
    private static let (head, tail) = (60, 140)

    private mutating func shorten() {
        fold()
        guard rows.count > Self.head + Self.tail + 1 else { return }
        let cut = Self.head..<(rows.count - Self.tail)
        replace([(cut, "\(cut.count) rows are left out")])
    }

    /// The longest sequence of rows whose repetitions are found, and the fewest rows that folding must save.
    private static let (longest, fewestSaved) = (12, 8)

    /// Replaces repetitions of the same rows, of which a livelock has hundreds.
    private mutating func fold() {
        let keys = rows.map(\.unnumbered)
        var cuts: [(Range<Int>, String)] = []
        var row = 0
        while row < keys.count {
            let found = (1...Self.longest).lazy.map { ($0, Self.repetitions(of: $0, at: row, in: keys)) }
                .first { period, times in period * times >= Self.fewestSaved }
            guard let (period, times) = found else {
                row += 1
                continue
            }
            let end = row + period * (times + 1)
            let what = period == 1 ? "the row above repeats" : "the \(period) rows above repeat"
            cuts.append(((row + period)..<end, "\(what) \(times) more times"))
            row = end
        }
        replace(cuts)
    }

    private static func repetitions(of period: Int, at row: Int, in keys: [Row]) -> Int {
        var next = row + period
        while next < keys.count, keys[next] == keys[next - period] { next += 1 }
        return (next - row) / period - 1
    }

    /// Replaces each of the given ranges, which are in order, by a gap.
    private mutating func replace(_ cuts: [(range: Range<Int>, text: String)]) {
        for (range, text) in cuts.reversed() {
            rows.replaceSubrange(range, with: [.gap(text)])
            func moved(_ row: Int) -> Int { row < range.lowerBound ? row : max(row - range.count, range.lowerBound - 1) + 1 }
            for index in columns.indices {
                let life = columns[index].life
                columns[index].life = moved(life.lowerBound)..<max(moved(life.upperBound), moved(life.lowerBound))
            }
        }
    }
}

extension Diagram.Row {
    /// The row without its steps' numbers, to compare it with others.
    fileprivate var unnumbered: Self {
        switch self {
        case .action(let action):
            .action(
                .init(step: nil, column: action.column, mark: action.mark, texts: action.texts, passedOver: action.passedOver))
        case .silence(_, let columns): .silence(steps: 0...0, columns: columns)
        case .time(_, let isDecisive): .time(.zero, isDecisive: isDecisive)
        case .gap: self
        }
    }
}
