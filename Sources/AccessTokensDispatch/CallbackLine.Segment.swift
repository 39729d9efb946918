import AccessTokens
import TokenServiceConcurrency

extension CallbackLine {
    /// A call with its handler, in a struct: an array of bare closures would allocate a wrapper for each.
    struct Call: Sendable {
        /// `nil`: the call has left.
        let handler: Handler?
    }

    /// A call's place: its segment in the line, and which of the segment's calls it is.
    @usableFromInline
    struct Position: Sendable, Hashable {
        let segment: Int
        let call: Int

        init(segment: Int, call: Int = 0) {
            self.segment = segment
            self.call = call
        }

        /// The place of a call that never was in the line.
        static func beside(_ number: Int) -> Position { Position(segment: -1, call: number) }
    }

    /// Handlers that are called one after the other, with one answer.
    struct Segment: Sendable {
        /// The place of its first call; the places of the others follow.
        let place: Position
        /// The first call is stored separately: most segments have only one call, and need no array.
        private var first: Call?
        var others: [Call] = []
        /// How many of the calls were answered out of turn.
        private var gone = 0
        var stage: Stage

        /// The state of the segment.
        enum Stage: Sendable {
            /// Its calls wait for a request that hasn't reached the actor yet.
            case toCarry(Errand)
            /// The calls wait for their answer, or the segment is finished and empty.
            ///
            /// - Parameter waiter: Stands for the calls in the lobby.
            case carried(waiter: TokenService.CallbackPlace? = nil)
            case answered(Result<AccessToken, any Error>)
            /// - Parameter publication: The token's number.
            case hit(AccessToken, publication: Int)
            /// The callback of an operation, to be called on the queue.
            case done(@Sendable () -> Void)

            static var late: Stage { .answered(.failure(TokenServiceError(.deadlineExceeded))) }
        }

        init(_ stage: Stage, at place: Position) {
            self.place = place
            self.stage = stage
        }

        var isReady: Bool {
            switch stage {
            case .toCarry, .carried: false
            case .answered, .hit, .done: true
            }
        }

        /// The answer for its calls.
        var answer: Result<AccessToken, any Error>? {
            switch stage {
            case .toCarry, .carried, .done: nil
            case .answered(let answer): answer
            case .hit(let token, _): .success(token)
            }
        }

        /// The number of a hit's token.
        var publication: Int? {
            if case .hit(_, let publication) = stage { publication } else { nil }
        }

        var count: Int { first == nil ? 0 : 1 + others.count }
        /// How many calls still wait.
        var waiting: Int { count - gone }

        /// - Parameter memory: Used if an array is needed.
        mutating func append(_ call: consuming Call, using memory: inout [Call]) {
            guard first != nil else { return first = call }
            if others.isEmpty { swap(&others, &memory) }
            others.append(call)
        }

        /// Removes a call, unless it has left; its place stays.
        mutating func takeCall(at index: Int) -> Call? {
            var leaving = Call(handler: nil)
            if index > 0 {
                swap(&leaving, &others[index - 1])
            } else if let call = first {
                (first, leaving) = (leaving, call)
            }
            guard leaving.handler != nil else { return nil }
            gone += 1
            return leaving
        }

        /// Calls the handlers one after the other.
        ///
        /// - Parameter isCancelled: Whether a call was cancelled after the segment was taken out of the line.
        func call(unless isCancelled: (Position) -> Bool = { _ in false }) {
            if case .done(let block) = stage { return block() }
            guard let answer, let first else { return }
            if !isCancelled(place) { first.handler?(answer) }
            for index in others.indices where !isCancelled(Position(segment: place.segment, call: index + 1)) {
                others[index].handler?(answer)
            }
        }
    }

    /// Arrays for reuse, so that consecutive hits allocate no memory.
    struct ReusableBuffers: Sendable {
        var segments: [Segment] = []
        var calls: [Call] = []

        init() {}

        /// Reuses the arrays of a finished delivery; call it outside the lock, since releasing a handler may run foreign code.
        ///
        /// The memory of a large batch is freed. Elements are removed one by one: usually there is one, and
        /// `removeAll(keepingCapacity:)` takes longer for it.
        init(emptying delivered: inout [Segment]) {
            if !delivered.isEmpty, delivered[0].others.capacity <= 2 * StateMachine.room {
                swap(&calls, &delivered[0].others)
                while !calls.isEmpty { calls.removeLast() }
            }
            if delivered.capacity <= 2 * StateMachine.room {
                swap(&segments, &delivered)
                while !segments.isEmpty { segments.removeLast() }
            }
            delivered = []
        }
    }

    /// A request or an operation to be taken to the actor.
    enum Errand: Sendable {
        case retrieve(generation: Int, urgency: Urgency)
        /// Drop a refused token, and get another one instead.
        case retrieveInstead(of: AccessToken)
        case perform(Operation)
    }
}
