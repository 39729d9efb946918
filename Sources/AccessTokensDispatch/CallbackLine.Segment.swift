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
        var calls: [Call] = []
        /// How many of them were answered out of turn.
        var gone = 0
        var answer: Result<AccessToken, any Error>?
        /// Of hits: the number of their token.
        var publication: Int?
        /// What an operation left to call on the queue.
        var block: (@Sendable () -> Void)?

        var isReady: Bool { answer != nil || block != nil }

        func call() {
            if let answer {
                for call in calls { call.handler(answer) }
            }
            block?()
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
            if !delivered.isEmpty, delivered[0].calls.capacity <= 2 * State.room {
                swap(&calls, &delivered[0].calls)
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
        case retrieve(segment: Int, generation: Int, urgency: Urgency)
        case perform(segment: Int, Operation)
    }
}
