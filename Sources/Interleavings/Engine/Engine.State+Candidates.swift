/// Finds the work that may be picked.
///
/// Functions that run for each step are `mutating` even if they change nothing: otherwise a debug build copies the whole state
/// for the call.
extension Engine.State {
    /// Stands for time among the candidates' tasks.
    static let timeTask = -1
    /// Stands for time among the candidates' indices into the lanes' `ready`.
    static let timeIndex = -1

    /// How often a candidate may be passed over before it goes first; a random walk practically never reaches the limit.
    ///
    /// It shrinks with the step limit, so that a schedule becomes fair before it counts as endless.
    /// On a busy machine the first half of the steps is for one long wait, or several; the second half lets all of them end.
    private mutating func patience(among count: Int, stepLimit: Int) -> Int {
        machine == .busy && steps < stepLimit / 2 ? stepLimit / 2 : min(100 + 10 * count, stepLimit / 4)
    }

    /// Properties of the candidates.
    struct Offer: Sendable {
        /// The candidate whose task ran last, so that any other preempts it; `nil`: that task can't continue.
        var current: Int?
        /// Whether candidate 0 goes first because it was passed over too often: others may be yielding until it runs.
        var isOverdue = false
    }

    /// Fills `candidates` and `candidateTasks`: first the overdue candidate, else the task that ran last, else the oldest; time
    /// comes last.
    mutating func findCandidates(time: TimeModel, stepLimit: Int) -> Offer {
        if let hold { isHolding = phase == .running && hold.isOn(after: steps, stepLimit: stepLimit) }
        addCandidates(time)
        if isHolding, hold?.movesTime == true ? candidates.isEmpty : candidates.allSatisfy({ $0 == Self.timeIndex }) {
            isHolding = false
            addCandidates(time)
        }
        var offer = Offer(current: current())
        let patience = patience(among: candidates.count, stepLimit: stepLimit)
        // Check only the oldest, which comes first, and time, which comes last: no other is overdue before the oldest.
        let overdue = [0, candidates.count - 1].first { candidates.indices.contains($0) && steps - since($0) > patience }
        if let first = overdue ?? offer.current, first > 0 {
            candidates.insert(candidates.remove(at: first), at: 0)
            candidateTasks.insert(candidateTasks.remove(at: first), at: 0)
            offer.current = current()
        }
        offer.isOverdue = overdue != nil && candidates.count > 1
        return offer
    }

    private mutating func addCandidates(_ time: TimeModel) {
        lanes.beginSearch()
        candidates.removeAll(keepingCapacity: true)
        candidateTasks.removeAll(keepingCapacity: true)
        for index in lanes.ready.indices where isCandidate(index) { add(index, lanes.ready[index].task) }
        guard hasRunningTimer() else { return }
        if candidates.isEmpty || time == .anytime {
            add(Self.timeIndex, Self.timeTask)
        } else {
            choices.omit(.earlyTimer)
        }
    }

    private mutating func current() -> Int? { lastTask == Self.timeTask ? nil : candidateTasks.firstIndex(of: lastTask) }

    private mutating func add(_ index: Int, _ task: Int) {
        candidates.append(index)
        candidateTasks.append(task)
    }

    /// The step since which a candidate has been waiting to be picked.
    private mutating func since(_ candidate: Int) -> Int {
        let index = candidates[candidate]
        // The time while a process was frozen doesn't count as waiting.
        return max(index == Self.timeIndex ? clock.since : lanes.ready[index].since, thawedAt)
    }

    private mutating func isCandidate(_ index: Int) -> Bool {
        if let process = lanes.ready[index].process, isFrozen(process) { return false }
        if isHolding, lanes.ready[index].task == tasks.root?.number { return false }
        guard lanes.ready[index].isThread else {
            return !lanes.isBehindEqual(index) && lanes.isNext(index, lanes.ready[index].turn)
        }
        // A thread that stopped inside a step still has its turn.
        switch lanes.ready[index].wait {
        case nil: return true
        case .gate(let gate): return gate.isOpen
        case .turn(let turn): return lanes.isNext(index, turn)
        }
    }
}
