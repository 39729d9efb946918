/// Who may run beside whom.
extension Engine.State {
    /// Whether it is a turn's time: nothing runs that excludes it, and nothing is before it in the order of its queue.
    mutating func isNext(_ turn: Engine.Turn) -> Bool {
        guard lanes[turn.lane].order != .concurrent else { return true }
        let isFirst = isFirst(turn)
        return isFirst && isFree(turn)
    }

    /// Whether nothing runs that excludes it.
    func isFree(_ turn: Engine.Turn) -> Bool {
        if lanes[turn.lane].isBusy || (turn.isBarrier && lanes[turn.lane].shares > 0) { return false }
        var target = lanes[turn.lane].target
        while let lane = target {
            if lanes[lane].isBusy { return false }
            target = lanes[lane].target
        }
        return true
    }

    /// Whether nothing that this search has seen is before it; notes that it was seen.
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

    /// Whether this search has seen a job that the same step sent to the same actor before, with the same priority: the runtime's
    /// queues keep the order of such jobs, and code relies on it.
    mutating func isBehindEqual(_ entry: Engine.Entry) -> Bool {
        let lane = entry.turn.lane
        guard let priority = entry.priority, lanes[lane].order == .serial else { return false }
        if lanes[lane].foundAt != searches || lanes[lane].foundSince != entry.since {
            (lanes[lane].foundAt, lanes[lane].foundSince) = (searches, entry.since)
            lanes[lane].foundPriorities.removeAll(keepingCapacity: true)
        }
        if lanes[lane].foundPriorities.contains(priority) { return true }
        lanes[lane].foundPriorities.append(priority)
        return false
    }

    /// Begins a turn, in its lane and in those of its target queues.
    mutating func begin(_ turn: Engine.Turn) { count(turn, 1) }

    mutating func end(_ turn: Engine.Turn) { count(turn, -1) }

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
