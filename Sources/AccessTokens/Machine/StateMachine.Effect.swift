extension TokenService.StateMachine {
    typealias Answer = Result<AccessToken, TokenServiceError>

    /// The result of an event; the actor performs its parts in this order.
    struct Ending: ~Copyable, Sendable {
        /// What callers see from now on.
        let snapshot: TokenService.Snapshot
        /// How the current flight starts; `nil` if it has started, or there is none.
        let start: FlightStart?
        /// The number of the flight that something may wait for.
        let awaitedFlight: Int?
        let effects: [Effect]
        /// The answer for all waiters; there is at most one, since afterwards none waits.
        let answer: Answer?
        /// From when on the service could be released, if that was asked; `nil`: not before another event.
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
        /// The store's turn: one operation at a time.
        case perform(StoreQueue.Operation)
        /// The store has done a fence's part, or won't in time; `givenUp` was in the store and the service didn't know it.
        case endFences([Int], givenUp: [AccessToken], TokenServiceError?)
        /// Pass a grant to the program, to be revoked.
        case discard(DiscardedGrant)
        case announce(TokenEvent)
    }
}
