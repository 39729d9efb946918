extension Diagram {
    /// The most columns that fit a terminal; if there are more, children that logged nothing share a column.
    private static let mostColumns = 8
    static let others = "others"

    /// Chooses the columns: one for each task and queue that the scenario named, and for children as far as there is room.
    ///
    /// Those that logged something or were passed over come first. A named task that neither ran nor was passed over has none.
    ///
    /// - Returns: The moments, of which some moved to the others' column, and the names of the columns.
    static func placed(_ moments: [Moment], of trace: Trace) -> (moments: [Moment], names: [String]) {
        let seen = Set(moments.compactMap(\.name) + moments.compactMap(\.passedOver))
        let telling = Set(moments.flatMap { ($0.texts.isEmpty ? [] : [$0.name]) + [$0.passedOver] }.compactMap(\.self))
        var all: [String] = []
        for name in trace.names + moments.flatMap({ [$0.name, $0.passedOver] }).compactMap(\.self)
        where seen.contains(name) && !all.contains(name) && (telling.contains(name) || name != scenario) { all.append(name) }

        let children = all.filter { trace.isOwn($0) }
        let folded = Set(
            (children.filter(telling.contains) + children.filter { !telling.contains($0) })
                .dropFirst(all.count <= mostColumns ? all.count : max(mostColumns - 1 - (all.count - children.count), 0)))
        guard !folded.isEmpty else { return (moments, all) }
        let moved = moments.map { moment in
            var moment = moment
            guard let name = moment.name else { return moment }
            if folded.contains(name) {
                moment.name = others
                if let first = moment.texts.first { moment.texts[0] = "\(name): \(first)" }
                moment.isEnd = false
            }
            if let passed = moment.passedOver, folded.contains(passed) {
                moment.passedOver = moment.name == others ? nil : others
            }
            return moment
        }
        return (moved, all.filter { !folded.contains($0) } + [others])
    }
}

extension Trace {
    /// Whether the explorer chose the name, not the scenario.
    fileprivate func isOwn(_ name: String) -> Bool { children.contains(name) || !names.contains(name) }
}
