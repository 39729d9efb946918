import AccessTokens

extension CallbackLine {
    /// Handlers that are called one after the other, with one answer.
    struct Segment: Sendable {
        var handlers: [Handler] = []
        var answer: Result<AccessToken, any Error>?
        /// What an operation left to call on the queue.
        var block: (@Sendable () -> Void)?

        var isReady: Bool { answer != nil || block != nil }

        func isAnswered(like other: Result<AccessToken, any Error>) -> Bool {
            guard case .success(let token)? = answer, case .success(let otherToken) = other else { return false }
            return token == otherToken
        }

        func call() {
            if let answer {
                for handler in handlers { handler(answer) }
            }
            block?()
        }
    }

    /// Something to take to the actor.
    enum Errand: Sendable {
        case retrieve(segment: Int, callers: Int, generation: Int, priority: TaskPriority)
        case perform(segment: Int, Operation)
    }
}
