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

    /// What one column's task did in a step.
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
        /// The number of rows left out.
        case gap(Int)
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
    static let usualOrder = "The usual order fails: a task runs while it can, then the longest-waiting one."

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

    init(columns: [Column], rows: [Row], reason: String) {
        self.columns = columns
        self.rows = rows
        self.reason = reason
        shorten()
    }

    /// How many rows are kept at the beginning and at the end, which tell more than those between.
    private static let (head, tail) = (60, 140)

    private mutating func shorten() {
        guard rows.count > Self.head + Self.tail + 1 else { return }
        let cut = Self.head..<(rows.count - Self.tail)
        rows.replaceSubrange(cut, with: [.gap(cut.count)])
        func moved(_ row: Int) -> Int { row < cut.lowerBound ? row : max(row - cut.count, cut.lowerBound - 1) + 1 }
        for index in columns.indices {
            let life = columns[index].life
            columns[index].life = moved(life.lowerBound)..<max(moved(life.upperBound), moved(life.lowerBound))
        }
    }
}
