extension TokenService.StateMachine {
    /// What the actor must do, in this order.
    enum Effect: Sendable {
        case start(Flight)
        case cancel(flight: Int)
        /// The store's turn: one operation at a time.
        case perform(StoreQueue.Operation)
        /// The store has done a fence's part, or won't in time; `found` was in the store and unknown.
        case endFences([Int], found: AccessToken?, TokenServiceError?)
        /// Give a grant to the program, to be revoked.
        case discard(DiscardedGrant)
        /// Answer all who wait.
        case answer(Result<AccessToken, TokenServiceError>)
        case announce(TokenEvent)
    }
}
