/// Finds the work that may be picked.
extension Engine.State {
    /// Stands for time among the candidates' tasks.
    static let timeTask = -1

    /// How often a candidate may be passed over; a random walk practically never reaches the limit.
    private static func passOverLimit(among count: Int) -> Int { 100 + 10 * count }

    /// Fills `candidates` and `candidateTasks`; candidate 0 is the task that ran last, else the oldest; time is the last.
    ///
    /// A candidate that reached the limit is the only one: others may be yielding until it runs, and no strategy may
    /// take that for a livelock.
    ///
    /// - Returns: Whether candidate 0 is the task that ran last.
    mutating func findCandidates(time: TimeModel) -> Bool {
        candidates.removeAll(keepingCapacity: true)
        candidateTasks.removeAll(keepingCapacity: true)
        var same: Int?
        for index in ready.indices where isCandidate(index) {
            if ready[index].task == lastTask, same == nil { same = candidates.count }
            candidates.append(index)
            candidateTasks.append(ready[index].task)
        }
        if !timers.isEmpty, candidates.isEmpty || time == .anytime { candidateTasks.append(Self.timeTask) }
        guard candidateTasks.count > 1 else { return same != nil }
        let mostPassed = Self.passOverLimit(among: candidateTasks.count)
        if let oldest = candidates.first, steps - ready[oldest].since > mostPassed {
            leave(oldest, ready[oldest].task)
            return false
        }
        if candidates.count < candidateTasks.count, steps - timeSince > mostPassed {
            leave(nil, Self.timeTask)
            return false
        }
        guard let same, same > 0 else { return same != nil }
        candidates.insert(candidates.remove(at: same), at: 0)
        candidateTasks.insert(candidateTasks.remove(at: same), at: 0)
        return true
    }

    private mutating func leave(_ index: Int?, _ task: Int) {
        candidates.removeAll(keepingCapacity: true)
        candidateTasks.removeAll(keepingCapacity: true)
        if let index { candidates.append(index) }
        candidateTasks.append(task)
        chooser.favour(task)
    }

    private mutating func isCandidate(_ index: Int) -> Bool {
        if let lock = ready[index].lock, lock.isTaken, !isWindingDown { return false }
        // A thread that stopped on the way still occupies its lane.
        if case .thread = ready[index].work { return true }
        let lane = ready[index].lane
        guard lanes[lane].order != .concurrent else { return true }
        if lanes[lane].isBusy { return false }
        guard lanes[lane].order == .fifo else { return true }
        defer { lanes[lane].foundAt = steps }
        return lanes[lane].foundAt != steps
    }
}
