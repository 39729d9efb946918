import AccessTokens

extension CallbackLine {
    /// A pure value: the line and who works on it.
    struct State: Sendable {
        var segments: [Segment] = []
        /// The number of the first segment of the line, and how many before it in the array are done with.
        var first = 0
        var delivered = 0
        private var errands: [Errand] = []
        /// Operations that have not yet taken effect.
        private(set) var operations = 0
        /// The generation that this line's last fence began: calls behind it are not from before it.
        private var lastFence = 0
        private var isCarrying = false
        /// How many deliveries stand in the queue: those whose dispatch has returned, less those that have begun.
        var dispatches = 0
        var isDelivering = false
        var deliversAgain = false
        /// How many more calls the delivery that runs takes along.
        var room = 0
        var spare = Spare()

        /// What a delivery takes along at most, so that handlers that ask again leave the queue to others.
        static let room = 64

        private var end: Int { first + segments.count - delivered }

        /// Hits in a row share one segment, and so one dispatch; `false`: this one begins another.
        ///
        /// Nothing of this line came between them: it would be the last.
        mutating func append(_ call: Call, publication: Int?) -> Bool {
            guard let last = segments.indices.last, publication != nil, segments[last].publication == publication
            else { return false }
            segments[last].calls.append(call)
            return true
        }

        mutating func append(_ call: Call, token: AccessToken, publication: Int?) {
            guard !append(call, publication: publication) else { return }
            var calls: [Call] = []
            swap(&calls, &spare.calls)
            calls.append(call)
            segments.append(Segment(calls: calls, answer: .success(token), publication: publication))
        }

        mutating func append(_ call: Call, generation: Int, priority: TaskPriority) {
            // The last segment grows as long as its errand has not left.
            if case .retrieve(let segment, let callers, generation, let highest)? = errands.last, segment == end - 1 {
                segments[segments.count - 1].calls.append(call)
                errands[errands.count - 1] = .retrieve(
                    segment: segment, callers: callers + 1, generation: generation, priority: max(highest, priority))
            } else {
                errands.append(.retrieve(segment: end, callers: 1, generation: generation, priority: priority))
                segments.append(Segment(calls: [call]))
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
    }
}
