import TokenServiceConcurrency

extension TokenService {
    /// Whether a user is signed in, as far as memory tells; asks no store and never waits.
    ///
    /// A service with a store says ``SignInState/Code/unknown`` until the store has been asked once, and one that shares its grant
    /// with others whenever it has neither a token nor a refresh token: use ``signInState()`` then. Any thread may call it at any
    /// time.
    public nonisolated var cachedSignInState: SignInState {
        let snapshot = lobby.withLock { $0.snapshot }
        if snapshot.token(at: clock.now()) != nil { return SignInState(.validToken) }
        return SignInState(snapshot.isSignedIn.map { $0 ? .signedIn : .signedOut } ?? .unknown)
    }

    /// Returns whether a user is signed in, from memory or else from the store; starts no load.
    ///
    /// Ask it when a program starts, to show the right screen. An expired token still counts if it has a refresh token. If the
    /// store has yet to be read, this call reads it, or joins the read that is under way, for 5 s at most; the token that it finds
    /// is then there for the next caller. If the grant is shared, the answer is that of the shared record.
    ///
    /// **Concurrent calls** share one read of the store. The call belongs to the moment at which it takes effect, so after a
    /// sign-out it says ``SignInState/Code/signedOut``. Cancelling the caller doesn't shorten the call.
    public nonisolated func signInState() async -> SignInState {
        if cachedToken != nil { return SignInState(.validToken) }
        guard let ties, ties.session != nil || ties.lender != nil else {
            let answer = SingleResult<SignInState>()
            if let state = await visit({ $0.ask(answer) }) { return state }
            // The store's read always ends, or has a limit.
            return (try? await answer.value()) ?? SignInState(.unknown)
        }
        // The grant is shared: its record, or the keys' common service, knows.
        let (state, plan) = await visit { service in (service.step { $0.askSignInState(at: $1) }, service.sharedPlan) }
        if let state, state.code == .validToken { return state }
        if let session = ties.session { return await session.signInState(plan) }
        return await ties.lender?.signInState() ?? SignInState(.unknown)
    }

    private func ask(_ answer: SingleResult<SignInState>) -> SignInState? {
        let state = step { $0.askSignInState(at: $1) }
        if state == nil { questions.append(answer) }
        return state
    }

    /// Answers the questions that waited for the store.
    func answerQuestions() {
        guard let state = machine.signInState else { return }
        for answer in questions { answer.complete(with: .success(state)) }
        questions = []
    }
}
