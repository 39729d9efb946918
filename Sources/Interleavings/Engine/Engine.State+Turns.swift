/// Which tasks may run at the same time.
extension Engine.State {
    /// Whether an entry of `ready` may run now: no running work excludes it, and nothing precedes it in its queue or the target queues.
    ///
    /// - Parameter turn: The turn that it waits for. An entry isn't passed as a value: that would retain all that it has, in each step.
    mutating func isNext(_ index: Int, _ turn: Engine.Turn) -> Bool {
        guard lanes[turn.lane].order != .concurrent else { return true }
        let isFirst = isFirst(turn)
        return isFirst && isFree(turn) && !(hasTargets && isBehindInTargets(ready[index]))
    }

    /// Whether no running work excludes it.
    mutating func isFree(_ turn: Engine.Turn) -> Bool {
        if lanes[turn.lane].isBusy || (turn.isBarrier && lanes[turn.lane].shares > 0) { return false }
        var target = lanes[turn.lane].target
        while let lane = target {
            if lanes[lane].isBusy { return false }
            target = lanes[lane].target
        }
        return true
    }

    /// Whether nothing seen by this search precedes it; marks it as seen.
    private mutating func isFirst(_ turn: Engine.Turn) -> Bool {
        let lane = turn.lane
        switch lanes[lane].order {
        case .concurrent, .serial: return true
        case .fifo:
            defer { lanes[lane].foundAt = searches }
            return lanes[lane].foundAt != searches
        case .barriers:
            defer {
                lanes[lane].foundAt = searches
                if turn.isBarrier { lanes[lane].barrierFoundAt = searches }
            }
            return (turn.isBarrier ? lanes[lane].foundAt : lanes[lane].barrierFoundAt) != searches
        }
    }

    /// Whether this search has seen an earlier job of the same priority that a step sent to the same actor.
    ///
    /// The runtime keeps the order of such jobs, and code relies on it. Where they may overtake, those of one step don't.
    mutating func isBehindEqual(_ index: Int) -> Bool {
        let lane = ready[index].turn.lane
        guard let priority = ready[index].priority, lanes[lane].order == .serial else { return false }
        let since = ready[index].since
        if lanes[lane].foundAt != searches || (ordering == .any && lanes[lane].foundSince != since) {
            (lanes[lane].foundAt, lanes[lane].foundSince) = (searches, since)
            lanes[lane].foundPriorities.removeAll(keepingCapacity: true)
        }
        if lanes[lane].foundPriorities.contains(priority) { return true }
        if !ready[index].isHop { lanes[lane].foundPriorities.append(priority) }
        return false
    }

    /// Whether something that excludes an entry entered a shared target queue before it.
    ///
    /// A serial queue has one place there from its first piece of work to its last, as in Dispatch.
    private func isBehindInTargets(_ entry: Engine.Entry) -> Bool {
        var next = Optional(entry.lane)
        while let lane = next {
            next = lanes[lane].target
            guard lanes[lane].order != .concurrent, let place = place(of: entry, in: lane) else { continue }
            let isBarrier = entry.isBarrier(in: lane)
            let isBehind = ready.contains { other in
                guard let earlier = self.place(of: other, in: lane), earlier < place else { return false }
                return lanes[lane].order != .barriers || isBarrier || other.isBarrier(in: lane)
            }
            if isBehind { return true }
        }
        return false
    }

    /// Returns the place of waiting work in the order of a queue; `nil`: it doesn't run there.
    private func place(of entry: Engine.Entry, in lane: Int) -> Int? {
        guard entry.isWaiting else { return nil }
        var (place, next) = (entry.arrival, entry.lane)
        while next != lane {
            guard let target = lanes[next].target else { return nil }
            if lanes[next].hasOnePlace { place = lanes[next].place }
            next = target
        }
        return place
    }

    /// Gives a queue that had no work a place in its target queue.
    mutating func takePlaces(for entry: Engine.Entry) {
        guard hasTargets, entry.isWaiting else { return }
        var next = Optional(entry.lane)
        while let lane = next {
            let isActive = lanes[lane].isBusy || lanes[lane].shares > 0 || ready.contains { place(of: $0, in: lane) != nil }
            if !isActive { lanes[lane].place = entry.arrival }
            next = lanes[lane].target
        }
    }

    /// Begins a turn, in its lane and in those of its target queues.
    mutating func begin(_ turn: Engine.Turn) { count(turn, 1) }

    /// - Parameter byThread: Whether a thread had the turn on its own stack.
    mutating func end(_ turn: Engine.Turn, byThread: Bool = false) {
        count(turn, -1)
        guard hasTargets else { return }
        var next = Optional(turn.lane)
        while let lane = next {
            if lanes[lane].hasOnePlace { handOn(lane, byThread: byThread) }
            next = lanes[lane].target
        }
    }

    /// Moves a queue to the last place in its target if a thread waits in it next, or was in it.
    ///
    /// Dispatch passes such a thread from queue to queue, and moves the queues behind work that has entered their targets
    /// meanwhile.
    private mutating func handOn(_ lane: Int, byThread: Bool) {
        guard let next = nextWaiting(in: lane) else { return }
        if !byThread { guard case .thread = next.work else { return } }
        arrivals += 1
        lanes[lane].place = arrivals
    }

    /// Returns the first work in a queue, or in the queue that has the first place there.
    private func nextWaiting(in lane: Int) -> Engine.Entry? {
        let waiting = ready.lazy.compactMap { entry in place(of: entry, in: lane).map { (entry, $0) } }
        guard let first = waiting.min(by: { $0.1 < $1.1 })?.0 else { return nil }
        var (next, holder) = (first.lane, Int?.none)
        while next != lane, let target = lanes[next].target {
            if lanes[next].hasOnePlace { holder = next }
            next = target
        }
        return holder.map(nextWaiting) ?? first
    }

    private mutating func count(_ turn: Engine.Turn, _ change: Int) {
        var (next, isBarrier) = (Optional(turn.lane), turn.isBarrier)
        while let lane = next {
            switch lanes[lane].order {
            case .concurrent: break
            case .barriers where !isBarrier: lanes[lane].shares += change
            case .serial, .fifo, .barriers: lanes[lane].isBusy = change > 0
            }
            isBarrier = false
            next = lanes[lane].target
        }
    }
}
