/// Calls as lines over time, one row each: `├──┤`.
///
/// Time is counted in beginnings and ends, so that nothing but their order shows.
struct IntervalChart {
    private let columns: [Int: Int]
    private let end: Int

    /// - Parameter intervals: The beginnings and ends; an end of `Int.max` is none.
    init(_ intervals: [(beginning: Int, end: Int)]) {
        let moments = intervals.flatMap { [$0.beginning, $0.end] }.filter { $0 != .max }.sorted()
        let step = moments.count > 16 ? 2 : 3
        columns = Dictionary(uniqueKeysWithValues: moments.enumerated().map { ($1, $0 * step) })
        end = moments.count * step
    }

    /// The line of one call; of one without an end it goes on beyond all others.
    func line(from beginning: Int, to last: Int) -> String {
        let start = columns[beginning] ?? 0
        let space = String(repeating: " ", count: start)
        guard let stop = columns[last] else {
            return space + "├" + String(repeating: "─", count: end - start - 1) + "┄┄"
        }
        return space + "├" + String(repeating: "─", count: stop - start - 1) + "┤"
    }
}
