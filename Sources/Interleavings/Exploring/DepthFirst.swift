/// Every schedule in turn, depth first, with a bound on the preemptions or delays in each.
///
/// A preemption is a switch away from a task that could have continued. Most bugs need no more than two, and bounding them
/// makes the number of schedules a polynomial of their length, where tasks seldom suspend. Source: Musuvathi, Qadeer,
/// "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI 2007.
///
/// A delay passes over a candidate, whether or not a task had to give way: picking the third one costs two. This also
/// bounds tasks that suspend often, such as those that call actors. Source: Emmi, Qadeer, Rakamarić, "Delay-Bounded
/// Scheduling", POPL 2011.
struct DepthFirst: Sendable {
    private let maximumPreemptions: Int?
    private let maximumDelays: Int?
    private var path: [(pick: Int, count: Int, width: Int)] = []
    private var next = 0
    private var preemptions = 0
    private var delays = 0
    private var difference: String?
    private var cuts: (preemptions: Bool, delays: Bool) = (false, false)

    /// The bounds that have excluded schedules so far.
    var bounds: [Coverage.Bound] {
        let preemptions = cuts.preemptions ? maximumPreemptions.map { [Coverage.Bound.preemptions($0)] } : nil
        let delays = cuts.delays ? maximumDelays.map { [Coverage.Bound.delays($0)] } : nil
        return (preemptions ?? []) + (delays ?? [])
    }

    /// The difference after equal choices that keeps the search from continuing; `nil`: none.
    var divergence: String? {
        let isShort = next < path.count
        return difference
            ?? (isShort ? "it ended before choice \(next + 1), which an earlier schedule with the same choices had" : nil)
    }

    /// - Parameters:
    ///   - preemptions: How many preemptions a schedule may have; `nil`: any number.
    ///   - delays: How many delays a schedule may have; `nil`: any number.
    init(preemptions: Int?, delays: Int?) {
        maximumPreemptions = preemptions
        maximumDelays = delays
    }

    /// - Parameter current: The candidate that picking any other would preempt, if there is one.
    mutating func choose(_ count: Int, current: Int?) -> Int {
        let isExhausted = current != nil && maximumPreemptions.map { preemptions >= $0 } ?? false
        let reach = maximumDelays.map { 1 + max($0 - delays, 0) } ?? count
        if isExhausted { cuts.preemptions = true }
        if reach < count { cuts.delays = true }
        let only = isExhausted ? current : nil
        let pick = pick(of: count, in: only.map { $0..<($0 + 1) } ?? 0..<min(count, reach))
        if let current, pick != current { preemptions += 1 }
        delays += pick
        return pick
    }

    mutating func value(below count: Int) -> Int {
        pick(of: count, in: 0..<count)
    }

    private mutating func pick(of count: Int, in picks: Range<Int>) -> Int {
        if next == path.count { path.append((picks.lowerBound, count, picks.upperBound)) }
        if path[next].count != count, difference == nil {
            difference =
                "at choice \(next + 1) there were \(count) candidates, and \(path[next].count) in an earlier schedule with the same choices"
        }
        let pick = min(path[next].pick, count - 1)
        next += 1
        return pick
    }

    /// Goes to the next schedule; `false` when there is none.
    mutating func advance() -> Bool {
        (next, preemptions, delays) = (0, 0, 0)
        while let last = path.last {
            if last.pick + 1 < last.width {
                path[path.count - 1].pick += 1
                return true
            }
            path.removeLast()
        }
        return false
    }
}
