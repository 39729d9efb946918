/// The results of one suite.
struct Table: Codable, Sendable {
    let id: String
    let title: String
    var rows: [Row] = []
    /// A note for the reader.
    var note: String?

    struct Row: Codable, Sendable {
        let name: String
        let cells: [Cell]
    }

    struct Cell: Codable, Sendable {
        let column: String
        let value: Sample
        let unit: Unit
    }

    enum Unit: String, Codable, Sendable {
        case nanoseconds, microseconds, milliseconds, bytes, kibibytes, each, perSecond, perRun, ratio

        /// Whether the figure is that of one machine in one run, so that it can't be compared with another run's.
        var isOfOneRun: Bool {
            switch self {
            case .nanoseconds, .microseconds, .milliseconds, .perSecond, .perRun: true
            case .bytes, .kibibytes, .each, .ratio: false
            }
        }
    }

    /// Returns the figure in a row and a column.
    func value(_ row: String, _ column: String) -> Sample? {
        rows.first { $0.name == row }?.cells.first { $0.column == column }?.value
    }

    /// Adds a row for each subject, with the ratio of the first one, ours, to it.
    mutating func compare(_ names: [String], _ rounds: Rounds, unit: Unit = .nanoseconds) {
        for (index, name) in names.enumerated() {
            var cells = [Cell(column: "each", value: rounds.sample(index), unit: unit)]
            if index > 0 { cells.append(Cell(column: "ours ÷ it", value: rounds.ratio(of: 0, to: index), unit: .ratio)) }
            rows.append(Row(name: name, cells: cells))
        }
    }

    mutating func add(_ name: String, _ cells: Cell...) {
        rows.append(Row(name: name, cells: cells))
    }
}
