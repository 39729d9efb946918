import TokenServiceConcurrency

/// Probabilistic concurrency testing: tasks have random priorities, and at a few random steps the highest becomes the lowest.
///
/// Finds a bug that needs `depth` ordering constraints among `n` tasks and `k` decisions with a probability of at least
/// 1 / (n · k^(depth − 1)) a schedule. Source: Burckhardt, Kothari, Musuvathi, Nagarakatti, "A Randomized Scheduler with
/// Probabilistic Guarantees of Finding Bugs", ASPLOS 2010.
struct Priorities: Sendable {
    var random: SplitMix64
    private var priorities: [Int: Int] = [:]
    private var changes: [Int] = []
    private var decision = 0
    private var lowest = 0
    private var highest = 1 << 30

    /// - Parameter length: The estimated number of decisions in an execution.
    init(random: SplitMix64, depth: Int, length: Int) {
        self.random = random
        for _ in 1..<max(depth, 1) { changes.append(1 + self.random.below(max(length, 1))) }
    }

    mutating func choose(among tasks: [Int]) -> Int {
        decision += 1
        for task in tasks where priorities[task] == nil { priorities[task] = 1 + random.below(1 << 30) }
        let best = first(of: tasks)
        guard changes.contains(decision) else { return best }
        lowest -= 1
        priorities[tasks[best]] = lowest
        return first(of: tasks)
    }

    /// Gives the highest priority to a task that was passed over too often: others may be yielding until it runs.
    mutating func favour(_ task: Int) {
        highest += 1
        priorities[task] = highest
    }

    private func first(of tasks: [Int]) -> Int {
        var best = 0
        var bestPriority = Int.min
        for (index, task) in tasks.enumerated() {
            guard let priority = priorities[task], priority > bestPriority else { continue }
            (best, bestPriority) = (index, priority)
        }
        return best
    }
}
