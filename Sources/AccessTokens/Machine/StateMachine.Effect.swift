extension TokenService.StateMachine {
    typealias Answer = Result<AccessToken, TokenServiceError>

    /// The result of an event; the actor performs its parts in this order.
    struct Ending: ~Copyable, Sendable {
        /// The snapshot for callers from now on.
        let snapshot: TokenService.Snapshot
        /// The start of the current flight; `nil` if it has started, or there is none.
        let start: FlightStart?
        /// The number of the flight that something may wait for.
        let awaitedFlight: Int?
        let effects: [Effect]
        /// The answer for all waiters; there is at most one, since afterwards none waits.
        let answer: Answer?
        /// When the service can be released, if that was asked for; `nil`: not before another event.
        let restsFrom: Duration?
    }

    /// The data with which a flight starts.
    struct FlightStart: Sendable {
        let id: Int
        /// The grant that its load uses.
        let previous: AccessToken?
        let deadline: Duration

        init(_ flight: borrowing Flight) {
            id = flight.id
            previous = flight.previous
            deadline = flight.deadline
        }
    }

    /// Another action for the actor.
    enum Effect: Sendable {
        case cancel(flight: Int)
        /// Perform an operation of the store; one runs at a time.
        case perform(StoreQueue.Operation)
        /// End fences: the store has done its part, or is late; `givenUp` was in the store, unknown to the service.
        case endFences([Int], givenUp: [AccessToken], TokenServiceError?)
        /// Pass a grant to the program for revocation.
        case discard(DiscardedGrant)
        case announce(TokenEvent)
    }
}
