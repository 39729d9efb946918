extension Diagram {
    /// Draws what was recorded.
    init(_ trace: Trace, error: any Error) {
        let moments = Self.moments(of: trace, error: error)
        var names: [String] = []
        // Who did nothing that is known gets no column.
        let known = Set(moments.flatMap { ($0.texts.isEmpty ? [] : [$0.name]) + [$0.passedOver] }.compactMap(\.self))
        let all = trace.names + moments.flatMap { [$0.name, $0.passedOver] }.compactMap(\.self)
        for name in all where known.contains(name) && !names.contains(name) { names.append(name) }
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
        self.init(columns: columns, rows: rows, reason: PlainText.clean("\(error)", keepsLines: true))
    }

    private static func append(_ moment: Moment, of column: Int, passedOver: Int?, to rows: inout [Row]) {
        guard moment.texts.isEmpty, let step = moment.step else {
            let texts = moment.texts.map { PlainText.clean($0) }
            let deed = Deed(step: moment.step, column: column, mark: moment.mark, texts: texts, passedOver: passedOver)
            return rows.append(.deed(deed))
        }
        // The scenario mostly waits for the others.
        if moment.name == scenario { return }
        // Those who went on in silence share a row, unless somebody would be there twice or out of order.
        if case .silence(let steps, let columns) = rows.last, let last = columns.last, last < column {
            rows[rows.count - 1] = .silence(steps: steps.lowerBound...step, columns: columns + [column])
        } else {
            rows.append(.silence(steps: step...step, columns: [column]))
        }
    }
}
