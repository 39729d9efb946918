import TokenServiceConcurrency

/// Probabilistic concurrency testing: tasks have random priorities, and at a few random decisions the highest is lowered.
///
/// Finds a bug that needs `depth` ordering constraints among `n` tasks and `k` decisions with a probability of at least 1 / (n ·
/// k^(depth − 1)) per schedule. Source: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic
/// Guarantees of Finding Bugs", ASPLOS 2010.
///
/// The paper counts steps. Where only one task can run, lowering it changes nothing before the next decision, so decisions
/// are enough, and they are fewer.
struct Priorities: Sendable {
    var random: SplitMix64
    /// Random numbers above every rank, so that all orders of the tasks are equally likely.
    private var priorities: [Int: Int] = [:]
    /// The ranks of the lowered tasks by the decision that lowers them: a later decision may have a higher rank.
    private(set) var ranks: [Int: Int] = [:]
    private(set) var decisions = 0
    private var highest = 1 << 62

    /// - Parameter length: The estimated number of decisions in an execution.
    init(random: SplitMix64, depth: Int, length: Int) {
        self.random = random
        let changes = max(depth, 1) - 1
        // The decisions are drawn in random order, so that the ranks are, too.
        for rank in 0..<changes {
            var decision = 0
            repeat { decision = 1 + self.random.below(max(length, changes)) } while ranks[decision] != nil
            ranks[decision] = rank
        }
    }

    mutating func choose(among tasks: [Int]) -> Int {
        decisions += 1
        for task in tasks where priorities[task] == nil { priorities[task] = (1 << 61) + random.below(1 << 61) }
        let best = first(of: tasks)
        guard let rank = ranks[decisions] else { return best }
        priorities[tasks[best]] = rank
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
