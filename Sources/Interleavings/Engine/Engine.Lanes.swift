extension Engine {
    /// The place of a piece of work: the pool, an actor or a queue.
    struct Lane: Sendable {
        enum Order: Sendable {
            /// Any number at once, in any order.
            case concurrent
            /// One at a time: an actor, whose queue has priorities. Jobs that steps send there with the same priority keep their order.
            case serial
            /// One at a time, in order of arrival: a queue.
            case fifo
            /// In order of arrival, any number at once; a barrier runs alone.
            case barriers
        }

        let name: String
        let order: Order
        /// The target queue's lane, in which its work runs as well; `nil`: it has none.
        var target: Int?
        /// Whether all its work has one place in the target queue, and which one.
        var hasOnePlace = false
        var place = 0
        /// The task of a queue that acts like one task; `nil`: each piece of work is a separate task.
        var task: Int?
        /// Whether the running work excludes all other work.
        var isBusy = false
        /// How many pieces of work that allow others are running, if counted.
        var shares = 0
        /// The searches in which work and a barrier of this lane were last found.
        var foundAt = -1
        var barrierFoundAt = -1
        /// The step whose jobs were last found, and their priorities.
        var foundSince = -1
        var foundPriorities: [UInt8] = []
    }

    /// The lanes of one execution, what is runnable in them, and which of it may run at the same time.
    struct Lanes: Sendable {
        private var all: [Lane] = []
        private(set) var ready: [Entry] = []
        private var readyBySleepers: [Entry] = []
        /// How often work became runnable.
        private var arrivals = 0
        /// How often candidates were looked for.
        private var searches = 0
        /// Whether a queue runs its work in another.
        private var hasTargets = false
        let ordering: ActorOrdering

        init(_ ordering: ActorOrdering) {
            self.ordering = ordering
        }

        subscript(lane: Int) -> Lane { all[lane] }

        mutating func add(_ lane: Lane) -> Int {
            all.append(lane)
            if lane.target != nil { hasTargets = true }
            return all.count - 1
        }

        mutating func beginSearch() { searches += 1 }

        /// Makes work runnable; work from a sleeper's step only when the sleeper is taken back.
        mutating func add(_ entry: consuming Entry, isLate: Bool) {
            arrivals += 1
            entry.arrival = arrivals
            takePlaces(for: entry)
            if isLate { readyBySleepers.append(entry) } else { ready.append(entry) }
        }

        mutating func addFirst(_ entries: [Entry]) { ready.insert(contentsOf: entries, at: 0) }

        /// Makes the work from sleepers' steps runnable.
        mutating func takeBackSleepers() {
            ready += readyBySleepers
            readyBySleepers = []
        }

        mutating func take(_ index: Int) -> Entry { ready.remove(at: index) }

        /// Whether an entry of `ready` may run now: no running work excludes it, and nothing precedes it in its queue or the target queues.
        ///
        /// - Parameter turn: The turn that it waits for. An entry isn't passed as a value: that would retain all that it has, in each step.
        mutating func isNext(_ index: Int, _ turn: Engine.Turn) -> Bool {
            guard all[turn.lane].order != .concurrent else { return true }
            let isTimed = ready[index].isTimed
            let isFirst = isTimed || isFirst(turn)
            return isFirst && isFree(turn) && !((hasTargets || isTimed) && isBehindInQueues(ready[index]))
        }

        /// Whether no running work excludes it.
        mutating func isFree(_ turn: Engine.Turn) -> Bool {
            if all[turn.lane].isBusy || (turn.isBarrier && all[turn.lane].shares > 0) { return false }
            var target = all[turn.lane].target
            while let lane = target {
                if all[lane].isBusy { return false }
                target = all[lane].target
            }
            return true
        }

        /// Whether nothing seen by this search precedes it; marks it as seen.
        private mutating func isFirst(_ turn: Engine.Turn) -> Bool {
            let lane = turn.lane
            switch all[lane].order {
            case .concurrent, .serial: return true
            case .fifo:
                defer { all[lane].foundAt = searches }
                return all[lane].foundAt != searches
            case .barriers:
                defer {
                    all[lane].foundAt = searches
                    if turn.isBarrier { all[lane].barrierFoundAt = searches }
                }
                return (turn.isBarrier ? all[lane].foundAt : all[lane].barrierFoundAt) != searches
            }
        }

        /// Whether this search has seen an earlier job of the same priority that a step sent to the same actor.
        ///
        /// The runtime keeps the order of such jobs, and code relies on it. Where they may overtake, those of one step don't.
        mutating func isBehindEqual(_ index: Int) -> Bool {
            let lane = ready[index].turn.lane
            guard let priority = ready[index].priority, all[lane].order == .serial else { return false }
            let since = ready[index].since
            if all[lane].foundAt != searches || (ordering == .any && all[lane].foundSince != since) {
                (all[lane].foundAt, all[lane].foundSince) = (searches, since)
                all[lane].foundPriorities.removeAll(keepingCapacity: true)
            }
            if all[lane].foundPriorities.contains(priority) { return true }
            if !ready[index].isHop { all[lane].foundPriorities.append(priority) }
            return false
        }

        /// Whether something that excludes an entry entered its queue or a shared target queue before it.
        ///
        /// A serial queue has one place there from its first piece of work to its last, as in Dispatch.
        private func isBehindInQueues(_ entry: Engine.Entry) -> Bool {
            var next = Optional(entry.lane)
            while let lane = next {
                next = all[lane].target
                guard all[lane].order != .concurrent, let place = place(of: entry, in: lane) else { continue }
                let isBarrier = entry.isBarrier(in: lane)
                let isBehind = ready.contains { other in
                    guard entry.isTimed || !other.isTimed else { return false }
                    guard let earlier = self.place(of: other, in: lane), earlier < place else { return false }
                    return all[lane].order != .barriers || isBarrier || other.isBarrier(in: lane)
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
                guard let target = all[next].target else { return nil }
                if all[next].hasOnePlace { place = all[next].place }
                next = target
            }
            return place
        }

        /// Gives a queue that had no work a place in its target queue.
        private mutating func takePlaces(for entry: Engine.Entry) {
            guard hasTargets, entry.isWaiting else { return }
            var next = Optional(entry.lane)
            while let lane = next {
                let isActive = all[lane].isBusy || all[lane].shares > 0 || ready.contains { place(of: $0, in: lane) != nil }
                if !isActive { all[lane].place = entry.arrival }
                next = all[lane].target
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
                if all[lane].hasOnePlace { handOn(lane, byThread: byThread) }
                next = all[lane].target
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
            all[lane].place = arrivals
        }

        /// Returns the first work in a queue, or in the queue that has the first place there.
        private func nextWaiting(in lane: Int) -> Engine.Entry? {
            let waiting = ready.lazy.compactMap { entry in place(of: entry, in: lane).map { (entry, $0) } }
            guard let first = waiting.min(by: { $0.1 < $1.1 })?.0 else { return nil }
            var (next, holder) = (first.lane, Int?.none)
            while next != lane, let target = all[next].target {
                if all[next].hasOnePlace { holder = next }
                next = target
            }
            return holder.map(nextWaiting) ?? first
        }

        private mutating func count(_ turn: Engine.Turn, _ change: Int) {
            var (next, isBarrier) = (Optional(turn.lane), turn.isBarrier)
            while let lane = next {
                switch all[lane].order {
                case .concurrent: break
                case .barriers where !isBarrier: all[lane].shares += change
                case .serial, .fifo, .barriers: all[lane].isBusy = change > 0
                }
                isBarrier = false
                next = all[lane].target
            }
        }
    }
}
