import AccessTokens

extension CallbackLine {
    /// A pure value: the line and who works on it.
    struct State: Sendable {
        private var segments: [Segment] = []
        /// The number of the first segment of the line, and how many before it in the array are done with.
        private var first = 0
        private var delivered = 0
        private var errands: [Errand] = []
        /// Operations that have not yet taken effect.
        private(set) var operations = 0
        /// The generation that this line's last fence began: calls behind it are not from before it.
        private var lastFence = 0
        private var isCarrying = false
        private var isDispatched = false
        private var isDelivering = false
        private var deliversAgain = false
        /// How many more calls the delivery that runs takes along.
        private var room = 0

        /// What a delivery takes along at most, so that handlers that ask again leave the queue to others.
        static let room = 64

        private var end: Int { first + segments.count - delivered }

        mutating func append(_ handler: @escaping Handler, answer: Result<AccessToken, any Error>) {
            // Hits in a row share one segment, and so one dispatch.
            if let last = segments.indices.last, last >= delivered, segments[last].isAnswered(like: answer) {
                segments[last].handlers.append(handler)
            } else {
                segments.append(Segment(handlers: [handler], answer: answer))
            }
        }

        mutating func append(_ handler: @escaping Handler, generation: Int, priority: TaskPriority) {
            // The last segment grows as long as its errand has not left.
            if case .retrieve(let segment, let callers, generation, let highest)? = errands.last, segment == end - 1 {
                segments[segments.count - 1].handlers.append(handler)
                errands[errands.count - 1] = .retrieve(
                    segment: segment, callers: callers + 1, generation: generation, priority: max(highest, priority))
            } else {
                errands.append(.retrieve(segment: end, callers: 1, generation: generation, priority: priority))
                segments.append(Segment(handlers: [handler]))
            }
        }

        mutating func append(_ operation: @escaping Operation) {
            errands.append(.perform(segment: end, operation))
            segments.append(Segment())
            operations += 1
        }

        mutating func beginCarrying() -> Bool {
            guard !isCarrying, !errands.isEmpty else { return false }
            isCarrying = true
            return true
        }

        mutating func takeErrands() -> [Errand] {
            defer { errands = [] }
            return errands
        }

        mutating func endCarrying() {
            isCarrying = false
        }

        mutating func answer(_ segment: Int, with result: Result<AccessToken, any Error>) {
            segments[segment - first + delivered].answer = result
        }

        mutating func finish(_ segment: Int, then block: @escaping @Sendable () -> Void) {
            segments[segment - first + delivered].block = block
        }

        mutating func tookEffect(fence: Int?) {
            operations -= 1
            if let fence { lastFence = fence }
        }

        /// The generation of calls that saw an older one only because a fence before them was on its way in.
        ///
        /// A call sees generation 4; its line's reset, called before it, then takes effect and begins 5: the call stands
        /// behind 5. But if an async caller's reset begins 6 meanwhile, the call stands before that, and gets its error.
        func seen(_ generation: Int) -> Int { max(generation, lastFence) }

        mutating func beginDispatch() -> Bool {
            guard !isDispatched, delivered < segments.count, segments[delivered].isReady else { return false }
            // Who delivers is settled at the call, so that `queue.sync {}` behind it waits for either.
            if isDelivering, room > 0 {
                room -= 1
                deliversAgain = true
                return false
            }
            isDispatched = true
            return true
        }

        mutating func beginDelivery() -> [Segment]? {
            isDispatched = false
            guard !isDelivering else {
                deliversAgain = true
                return nil
            }
            isDelivering = true
            room = Self.room
            return takeReady()
        }

        mutating func continueDelivery() -> [Segment]? {
            guard deliversAgain else {
                isDelivering = false
                return nil
            }
            deliversAgain = false
            return takeReady()
        }

        private mutating func takeReady() -> [Segment] {
            // Mostly all of them: then nothing is copied, and nobody refers to their numbers any longer.
            if delivered == 0, segments.allSatisfy(\.isReady) {
                defer { segments = [] }
                return segments
            }
            // A copy, and the originals emptied: the array stays unshared, and no handler outlives its call.
            let ready = Array(segments[delivered...].prefix(while: \.isReady))
            for index in delivered..<(delivered + ready.count) { segments[index] = Segment() }
            first += ready.count
            delivered += ready.count
            // Compacted when half of it is done with: a constant cost for each segment.
            if delivered * 2 >= segments.count {
                segments.removeFirst(delivered)
                delivered = 0
            }
            return ready
        }
    }
}
