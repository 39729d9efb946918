import AccessTokens
import TokenServiceConcurrency

extension CallbackLine {
    /// A call, with its handler as it was given: an array of bare closures would allocate a wrapper for each.
    struct Call: Sendable {
        let handler: Handler

        /// What stands for a call that has left.
        static let gone = Call { _ in }
    }

    /// Handlers that are called one after the other, with one answer.
    struct Segment: Sendable {
        /// The first call stands apart, since most are alone: they need no array.
        private var first: Call?
        var others: [Call] = []
        /// How many calls were answered out of turn.
        private var gone = 0
        var stage: Stage

        /// How far it has come.
        enum Stage: Sendable {
            /// What its calls wait for is to be taken to the actor.
            case toCarry(Errand)
            /// They wait; or the segment is done with, and empty.
            case carried
            case answered(Result<AccessToken, any Error>)
            /// - Parameter publication: The token's number.
            case hit(AccessToken, publication: Int)
            /// What an operation left to call on the queue.
            case done(@Sendable () -> Void)
        }

        init(_ stage: Stage) {
            self.stage = stage
        }

        var isReady: Bool {
            switch stage {
            case .toCarry, .carried: false
            case .answered, .hit, .done: true
            }
        }

        /// What there is for its calls.
        var answer: Result<AccessToken, any Error>? {
            switch stage {
            case .toCarry, .carried, .done: nil
            case .answered(let answer): answer
            case .hit(let token, _): .success(token)
            }
        }

        /// Of hits: the number of their token.
        var publication: Int? {
            if case .hit(_, let publication) = stage { publication } else { nil }
        }

        var count: Int { first == nil ? 0 : 1 + others.count }
        /// How many still wait.
        var waiting: Int { count - gone }

        /// - Parameter memory: Taken if an array is needed.
        mutating func append(_ call: consuming Call, using memory: inout [Call]) {
            guard first != nil else { return first = call }
            if others.isEmpty { swap(&others, &memory) }
            others.append(call)
        }

        /// A call leaves, whose place stays.
        mutating func takeCall(at index: Int) -> Call {
            gone += 1
            var leaving = Call.gone
            if index > 0 {
                swap(&leaving, &others[index - 1])
            } else if let call = first {
                (first, leaving) = (leaving, call)
            }
            return leaving
        }

        func call() {
            if case .done(let block) = stage { return block() }
            guard let answer, let first else { return }
            first.handler(answer)
            for call in others { call.handler(answer) }
        }
    }

    /// Arrays to be filled again, so that hits in a row need no memory of their own.
    struct ReusableBuffers: Sendable {
        var segments: [Segment] = []
        var calls: [Call] = []

        init() {}

        /// Those of a delivery that is done; not under the lock, since a handler may be the last owner of anything.
        ///
        /// A crowd's memory is given back. One by one, since mostly there is one, and `removeAll(keepingCapacity:)` takes more for it.
        init(emptying delivered: inout [Segment]) {
            if !delivered.isEmpty, delivered[0].others.capacity <= 2 * State.room {
                swap(&calls, &delivered[0].others)
                while !calls.isEmpty { calls.removeLast() }
            }
            if delivered.capacity <= 2 * State.room {
                swap(&segments, &delivered)
                while !segments.isEmpty { segments.removeLast() }
            }
            delivered = []
        }
    }

    /// Something to take to the actor.
    enum Errand: Sendable {
        case retrieve(generation: Int, urgency: Urgency)
        case perform(Operation)
    }
}
