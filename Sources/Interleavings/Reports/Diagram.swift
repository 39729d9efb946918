/// What a report shows of an execution: a column for each who took part, and rows downwards in the order of time.
struct Diagram: Sendable, Equatable {
    /// A task, a queue or a thread.
    struct Column: Sendable, Equatable {
        let name: String
        /// The rows in which it lives: from its first step to its end.
        var life: Range<Int>
    }

    enum Mark: Sendable {
        case usual
        /// The schedule left the usual order here.
        case decisive
        /// Here it failed.
        case failure
    }

    /// What one of them did in a step.
    struct Deed: Sendable, Equatable {
        let step: Int?
        let column: Int
        let mark: Mark
        var texts: [String]
        /// Who would have run, had the schedule not left the usual order.
        let passedOver: Int?
    }

    enum Row: Sendable, Equatable {
        case deed(Deed)
        /// These went on, one after the other from left to right, and nothing is known of it.
        case silence(steps: ClosedRange<Int>, columns: [Int])
        case time(Duration, isDecisive: Bool)
        /// So many rows are left out.
        case gap(Int)
    }

    /// How a step is named: by its number, or by its steps' numbers.
    static func number(of row: Row) -> String {
        switch row {
        case .deed(let deed): deed.step.map { "\($0)" } ?? ""
        case .silence(let steps, _): steps.count == 1 ? "\(steps.lowerBound)" : "\(steps.lowerBound)–\(steps.upperBound)"
        case .time, .gap: ""
        }
    }

    /// What is said where nothing is marked.
    static let usualOrder = "The usual order fails: each runs while it can, then who has waited longest."

    /// Whether the schedule never left the usual order.
    var isUsual: Bool {
        rows.allSatisfy { row in
            switch row {
            case .deed(let deed): deed.mark != .decisive && deed.passedOver == nil
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

    /// What begins and what leads to the end is worth more than what is between.
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
