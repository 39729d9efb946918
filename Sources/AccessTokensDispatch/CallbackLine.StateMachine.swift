import AccessTokens
import TokenServiceConcurrency

extension CallbackLine {
    /// A pure value: the line, and the state of its carriers and deliveries.
    struct StateMachine: Sendable {
        var segments: [Segment] = []
        /// The number of the first segment in the line, and how many finished segments precede it in the array.
        var first = 0
        var delivered = 0
        /// How many segments are not ready.
        private var pending = 0
        /// Answers that don't wait for the calls before them, each for one call.
        var outOfTurn: [Segment] = []
        /// How many calls never were in the line.
        var besides = 0
        /// The waiters in the lobby whose calls have all expired, with their segments.
        var deserted: [(segment: Int, waiter: TokenService.CallbackPlace)] = []
        /// The calls that were cancelled while a delivery had them.
        var cancelled: Set<Position> = []
        /// The limits of calls that may have to wait; includes some of calls that have been delivered.
        var limits = LimitHeap<Position>()
        var limitsUntilPurge = fewLimits
        var isAlarmSet = false
        /// The number of the first segment whose errand hasn't been taken to the actor.
        private var carried = 0
        /// The highest priority of the errands that haven't been taken; `nil`: there are none.
        private var urgency: Urgency?
        /// The highest priority of the carriers that are on their way to the actor, and the priorities of the others, the highest
        /// one last.
        private var carrier: Urgency?
        private var slowerCarriers: [Urgency] = []
        /// How many operations were added; each has ended what it ends before.
        private(set) var epoch = 0
        /// How many deliveries wait in the queue: those whose dispatch has returned, minus those that have begun.
        var dispatches = 0
        var isDelivering = false
        var deliversAgain = false
        /// How many more calls the running delivery may take along.
        var room = 0
        var buffers = ReusableBuffers()

        /// How many calls a delivery takes along at most, so that handlers that call again leave the queue to others.
        static let room = 64
        /// The number of limits from which it pays to remove those of delivered calls.
        static let fewLimits = 64

        /// The number of the next segment.
        var end: Int { first + segments.count - delivered }

        /// The segment with this number, which hasn't been delivered.
        subscript(number: Int) -> Segment {
            get { segments[number - first + delivered] }
            _modify { yield &segments[number - first + delivered] }
        }

        var isReady: Bool { pending == 0 }

        // MARK: Calls

        /// Adds a hit to the last segment, so that hits in a row share one dispatch; `false` if that segment has another token.
        ///
        /// The number was read earlier, and an operation of this line may have ended that token since. But then the operation
        /// comes after that token's segment, so that segment isn't the last one and nothing is added.
        mutating func append(_ call: Call, publication: Int, limit: Limit? = nil) -> Position? {
            guard segments.last?.publication == publication else { return nil }
            return appendToLast(call, limit)
        }

        /// Adds a hit; `nil` if it is none: an operation took the place ahead of it after the call looked at the token.
        ///
        /// Call and token are consumed: the line takes over the references that were counted for the call.
        ///
        /// - Parameter look: The epoch in which the call looked. Thread A looks at the token and is interrupted; meanwhile an
        ///   invalidation ahead of it takes effect and is reported. A's call must not get that token any more.
        mutating func append(
            _ call: consuming Call, token: consuming AccessToken, publication: Int, limit: Limit? = nil, since look: Int
        ) -> Position? {
            guard look == epoch else { return nil }
            if segments.last?.publication != publication { begin(.hit(token, publication: publication)) }
            return appendToLast(call, limit)
        }

        /// Adds a miss, or a call that may be one; `nil` if an operation took the place ahead of it after it read the generation.
        mutating func append(
            _ call: Call, generation: Int, as urgency: Urgency, limit: Limit? = nil, since look: Int
        ) -> Position? {
            guard look == epoch else { return nil }
            // The last segment grows until its errand leaves.
            if carried < end, case .toCarry(.retrieve(generation, let highest))? = segments.last?.stage {
                segments[segments.count - 1].stage = .toCarry(.retrieve(generation: generation, urgency: max(highest, urgency)))
            } else {
                begin(.toCarry(.retrieve(generation: generation, urgency: urgency)))
                pending += 1
            }
            raise(to: urgency)
            return appendToLast(call, limit)
        }

        /// Adds a call whose request was refused; the refusal is an operation.
        mutating func append(_ call: Call, insteadOf refused: AccessToken, as urgency: Urgency) -> Position {
            append(.retrieveInstead(of: refused), as: urgency)
            return appendToLast(call, nil)
        }

        private mutating func begin(_ stage: Segment.Stage) {
            segments.append(Segment(stage, at: Position(segment: end)))
        }

        private mutating func appendToLast(_ call: consuming Call, _ limit: Limit?) -> Position {
            segments[segments.count - 1].append(call, using: &buffers.calls)
            let place = Position(segment: end - 1, call: segments[segments.count - 1].count - 1)
            if let limit { keep(limit, of: place) }
            return place
        }

        mutating func append(_ operation: @escaping Operation, as urgency: Urgency) {
            append(.perform(operation), as: urgency)
        }

        private mutating func append(_ errand: Errand, as urgency: Urgency) {
            begin(.toCarry(errand))
            pending += 1
            raise(to: urgency)
            epoch += 1
        }

        private mutating func raise(to urgency: Urgency) {
            self.urgency = max(self.urgency ?? urgency, urgency)
        }

        // MARK: Errands

        /// Returns the priority of a carrier that must start now, if there is one.
        ///
        /// A call that is more urgent than the carriers on their way sends one of its own; the first to arrive takes all waiting
        /// errands along. So no urgent call waits until the pool has time for a background task.
        mutating func beginCarrying() -> Urgency? {
            guard let urgency else { return nil }
            if let carrier {
                guard carrier < urgency else { return nil }
                slowerCarriers.append(carrier)
            }
            carrier = urgency
            return urgency
        }

        /// Handles a carrier's arrival; returns the segments whose errands it takes.
        mutating func takeErrands(by carrier: Urgency) -> Range<Int> {
            if carrier == self.carrier {
                self.carrier = slowerCarriers.popLast()
            } else {
                slowerCarriers.removeAll { $0 == carrier }
            }
            urgency = nil
            defer { carried = end }
            return max(carried, first)..<end
        }

        /// Returns a segment's errand; `nil`: the segment has hits, which may already have been delivered.
        mutating func takeErrand(of segment: Int) -> Errand? {
            guard segment >= first, case .toCarry(let errand) = self[segment].stage else { return nil }
            self[segment].stage = .carried()
            return errand
        }

        /// Returns how many calls of a segment still wait.
        func callers(of segment: Int) -> Int { self[segment].waiting }

        /// Marks a segment as ready: its calls have an answer, or its operation is done.
        mutating func finish(_ segment: Int, _ stage: Segment.Stage) {
            self[segment].stage = stage
            pending -= 1
        }
    }
}
