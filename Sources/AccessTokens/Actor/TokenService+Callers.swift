import TokenServiceConcurrency

extension TokenService {
    /// The token to hand out right now, if there is one; starts nothing and never waits.
    ///
    /// Reads a copy, which every change updates before its callers are answered. After a refusal it is `nil` until the service has
    /// decided whether the token stays in use. Any thread may call it at any time.
    public nonisolated var cachedToken: AccessToken? {
        let hit = lobby.withLock { $0.snapshot.hit }
        guard hit.token != nil, clock.now() >= hit.nothingDueUntil else { return hit.token }
        return lobby.withLock { $0.snapshot }.token(at: clock.now())
    }

    /// Returns a valid access token: the cached one at once, or else the one from the load that all callers share.
    ///
    /// A valid token costs a lock and a clock reading: no suspension, no allocation, even for a cancelled caller. In the token's
    /// soft window a call starts one refresh in the background, and still returns at once. Otherwise the call joins the running
    /// load, or starts one; callers are answered in the order of their arrival. A cancelled caller leaves at once and alone; the
    /// load continues for the others.
    ///
    /// - Parameter limit: How long this caller waits at most, on the service's clock; `nil`: as long as the load may take. With
    ///   zero or less, a call that finds no valid token starts nothing.
    /// - Throws: ``TokenServiceError``; `CancellationError` if the caller is cancelled while it waits, or before a miss.
    @inlinable
    public nonisolated(nonsending) func retrieveToken(within limit: Duration? = nil) async throws -> AccessToken {
        // Only this is inlined into callers: a hit is then one synchronous call, and needs no frame of an async one.
        let look = look()
        if let token = look.token { return token }
        return try await join(seen: look.generation, until: deadline(after: limit))
    }

    /// Returns a token that is good for at least this long, if the server issues such tokens.
    ///
    /// For what outlives the call: a long upload, a token handed to another process. If the cached token expires sooner, the call
    /// joins the running load, or starts one; other callers get the cached token meanwhile. What that load brings is the answer,
    /// however long it is good: ask ``timeLeft(of:)``. A token that this service may not replace now (the server fails, a grant
    /// can't be saved, the service is drained, `limit` has passed) is the answer, too, as long as it is valid. So this call fails
    /// only where one without a minimum would wait for a load and fail as well.
    ///
    /// More than half of the token's lifetime counts as half. So such calls never start load after load, however much they ask
    /// for and however many they are.
    ///
    /// - Parameters:
    ///   - minimum: How long the token must be good, to its real expiry.
    ///   - limit: How long this caller waits at most, as in ``retrieveToken(within:)``.
    /// - Throws: ``TokenServiceError``; `CancellationError` if the caller is cancelled while it waits, or before.
    public nonisolated(nonsending) func retrieveToken(
        validFor minimum: Duration, within limit: Duration? = nil
    ) async throws -> AccessToken {
        try await retrieveToken(validFor: minimum, within: limit, seen: nil)
    }

    /// The same for a call that began in an earlier generation; `nil`: it begins now.
    package nonisolated(nonsending) func retrieveToken(
        validFor minimum: Duration, within limit: Duration? = nil, seen earlier: Int?
    ) async throws -> AccessToken {
        let (snapshot, end) = lobby.withLock { ($0.snapshot, $0.end) }, now = clock.now()
        let seen = earlier ?? snapshot.hit.generation, isSame = seen == snapshot.hit.generation
        if isSame, let token = snapshot.token(at: now), token.isGood(for: minimum, until: end, at: now) {
            if snapshot.isRefreshDue(at: now) { claimRefresh(at: now) }
            return token
        }
        do {
            let deadline = deadline(after: limit)
            let token = try await ask(.validFor(minimum), seen: seen, until: deadline).answer.get()
            // One of an earlier run or of another service isn't what a load for this call has brought.
            guard await visit({ $0.machine.newest == 0 }) else { return token }
            return try await ask(.validFor(minimum), seen: seen, until: deadline).answer.get()
        } catch let error as TokenServiceError where error.code == .deadlineExceeded || error.code == .loaderWaitsForItself {
            let snapshot = lobby.withLock { $0.snapshot }
            guard isSame, snapshot.hit.generation == seen, let token = snapshot.token(at: clock.now()) else { throw error }
            return token
        }
    }

    /// Loads a token whatever is cached, and returns one whose load began after this call.
    ///
    /// For claims that have just changed: a role was granted, a tenant was created. Requests that were refused need
    /// ``retrieveToken(insteadOf:within:)`` instead, all others ``retrieveToken(within:)``.
    ///
    /// Calls at the same time share one load. A load that runs already isn't joined: this call waits for its end and then
    /// for another. Other callers get the cached token meanwhile, and the new one afterwards. Such calls and refusals together cause
    /// at most 5 loads in 30 s.
    ///
    /// - Parameter limit: How long this caller waits at most, as in ``retrieveToken(within:)``.
    /// - Throws: ``TokenServiceError``, never answering with an older token: the load's error, or why none may start;
    ///   `CancellationError` if the caller is cancelled.
    public nonisolated(nonsending) func reloadToken(within limit: Duration? = nil) async throws -> AccessToken {
        try await reloadToken(within: limit, seen: currentGeneration)
    }

    package nonisolated(nonsending) func reloadToken(within limit: Duration? = nil, seen: Int) async throws -> AccessToken {
        let deadline = deadline(after: limit), last = await visit { $0.machine.flights }
        while true {
            let (answer, flight) = try await ask(.loadedAfter(last), seen: seen, until: deadline)
            // What the machine answers at once meets the demand.
            guard let flight else { return try answer.get() }
            switch answer {
            case .success(let token):
                // Another load may have answered: one that was running before, or was given up. Yet another may have ended since.
                if await visit({ $0.machine.newest > last && $0.machine.lastToken?.value == token.value }) { return token }
            case .failure(let error): if flight > last { throw error }
            }
        }
    }

    @usableFromInline
    nonisolated func deadline(after limit: Duration?) -> Duration? {
        limit.map { clock.now() + RefreshPolicy.counted($0) }
    }

    /// How long a token is still good, to its real expiry on the service's clock; `nil` if it has no lifetime.
    ///
    /// Zero if the token isn't the one that the service hands out now: ask for another.
    ///
    /// - Parameter token: A token that this service has returned.
    public nonisolated func timeLeft(of token: AccessToken) -> Duration? {
        let (current, end) = lobby.withLock { ($0.snapshot.hit.token, $0.end) }
        return current?.value == token.value ? end.map { max($0 - clock.now(), .zero) } : .zero
    }

    /// Returns a token of the same session with which to resend a refused request.
    ///
    /// Call it with the token that the refused request carried. In one step it does what ``invalidate(_:)`` and
    /// ``retrieveToken(within:)`` do, and first checks whose request it is. Suppose that Anna's request is under way when she
    /// signs out and Ben signs in. Then the server's 401 says nothing about Ben's token, and Anna's request must not be sent with
    /// it: the call throws ``TokenServiceError/Code/reset``. A new token of the same user, from a refresh or from
    /// ``replace(with:)``, is returned.
    ///
    /// The session is the one in which this service handed out `refused`, got it from ``replace(with:)``, or found it in the
    /// store, which it asks first if it hasn't yet. The service knows its last 64 tokens by their strings, so a token made from
    /// a header's text will do. A token that the service doesn't know is treated as one of an ended session. So ask the service
    /// that the token came from: with `TokenServices`, hold on to the key's service for as long as the request lasts.
    ///
    /// **Concurrent calls.** Any number of calls with one token cause one load. A reset ends the calls that are waiting.
    ///
    /// Refusals cause at most 5 loads in 30 s. Until another may start, the newest token stays in use, and this call returns it
    /// once more, for one retry: a server that refuses a request now and then may accept it. If the retry is refused, too, call
    /// this again with the token that it carried, as this call returned it. It then throws the error
    /// ``TokenServiceError/Code/tooManyInvalidations``, which says when another token may be loaded.
    ///
    /// - Parameters:
    ///   - refused: The token that the refused request carried.
    ///   - limit: How long this caller waits at most, as in ``retrieveToken(within:)``.
    /// - Throws: ``TokenServiceError``, with the code `reset` if the session is over; `CancellationError` if the caller is
    ///   cancelled and no token is there. The refused token is dropped in any case.
    ///
    /// Source: RFC 6750 §3.1 (`invalid_token`).
    public nonisolated(nonsending) func retrieveToken(
        insteadOf refused: AccessToken, within limit: Duration? = nil
    ) async throws -> AccessToken {
        let deadline = deadline(after: limit)
        var resending = await resend(insteadOf: refused)
        if case .afterRestore(let generation) = resending {
            _ = try await join(seen: generation, until: deadline)
            resending = await resend(insteadOf: refused)
        }
        switch resending {
        case .with(let token): return token
        case .refusedTwice(let error): throw error
        // A reset from now on ends this call, which belongs to the generation before that reset.
        case .wait(let generation): return try await join(seen: generation, until: deadline)
        case .afterRestore, .tooLate: throw TokenServiceError.refusedElsewhere
        }
    }

    private nonisolated(nonsending) func resend(insteadOf refused: AccessToken) async -> Machine.Resending {
        await visit { service in service.resending(insteadOf: refused) }
    }

    /// The result of a call's check before it enters the actor.
    @usableFromInline
    package struct Look {
        /// The token to hand out; `nil`: there is none.
        @usableFromInline package let token: AccessToken?
        /// The generation to join with.
        @usableFromInline package let generation: Int
        /// The number of the token.
        package let publication: Int
    }

    /// Looks for a valid token; the first caller in the soft window starts a refresh.
    @usableFromInline
    package nonisolated func look() -> Look {
        let (look, nothingDueUntil) = lobby.withLock { lobby in
            (Look(lobby.snapshot.hit, lobby.snapshot.hit.token), lobby.snapshot.hit.nothingDueUntil)
        }
        // Read the clock after the copy, so that a token is never judged by a time before it was read.
        return look.token == nil || clock.now() < nothingDueUntil ? look : lookAndRefresh()
    }

    /// The same as ``look()``, for when a refresh or a deadline may be due as well.
    @inline(never)
    private nonisolated func lookAndRefresh() -> Look {
        let seen = lobby.withLock { $0.snapshot }
        let now = clock.now()
        let look = Look(seen.hit, seen.token(at: now))
        if look.token != nil, seen.isRefreshDue(at: now) { claimRefresh(at: now) }
        return look
    }

    /// Starts the refresh or the store check, if this caller is the first, and doesn't wait for it.
    @inline(never)
    private nonisolated func claimRefresh(at now: Duration) {
        guard lobby.withLock({ $0.claimRefresh(at: now) }) else { return }
        Task.detached(on: executor, priority: Task.currentPriority) {
            await self.step { $0.refreshAhead(at: $1) }
        }
    }
}

extension TokenService {
    typealias Place = Lobby<Waiter>.Place

    /// The result of joining: an answer, or a place among the waiters.
    private enum Joining {
        case answer(AccessToken)
        case seat(Seat)
    }

    /// The path of a call that finds no valid token: takes a place in the lobby if there is a load to join; otherwise asks the
    /// actor.
    ///
    /// Each waiting task keeps this function's frame, so what needs many variables is called and not inlined; only `wait` is
    /// inlined, whose frame would be another.
    @usableFromInline
    nonisolated(nonsending) func join(seen generation: Int, until deadline: Duration?) async throws -> AccessToken {
        try Task.checkCancellation()
        let load = try beginWaiting()
        defer { endWaiting(load) }
        let seat: Seat
        if let free = try self.seat(seen: generation, until: deadline) {
            seat = free
        } else {
            switch try await askActor(seen: generation, until: deadline) {
            case .answer(let token): return token
            case .seat(let given): seat = given
            }
        }
        return try await wait(at: seat)
    }

    /// The path of a call with a demand; a failure of what it waited for is returned, not thrown, with the flight that it joined.
    private nonisolated(nonsending) func ask(
        _ demand: Machine.Demand, seen generation: Int, until deadline: Duration?
    ) async throws -> (answer: Result<AccessToken, any Error>, flight: Int?) {
        try Task.checkCancellation()
        let caller = caller, urgency = caller.urgency
        let load = try beginWaiting()
        defer { endWaiting(load) }
        let (joining, flight) = try await visit(as: caller) {
            (try $0.askActor(demand, seen: generation, as: urgency, until: deadline), $0.machine.state.flightID)
        }
        switch joining {
        case .answer(let token): return (.success(token), nil)
        case .seat(let seat): return (await Result { try await wait(at: seat) }, flight ?? 0)
        }
    }

    /// Takes a place in the lobby if there is a load to join.
    @inline(never)
    private nonisolated func seat(seen generation: Int, until deadline: Duration?) throws -> Seat? {
        let now = clock.now()
        if let deadline, deadline <= now { throw TokenServiceError(.deadlineExceeded) }
        guard let place = lobby.withLock({ $0.join(seen: generation, until: deadline, at: now) }) else { return nil }
        if let deadline { wake(atLimit: deadline) }
        return Seat(self, place)
    }

    @inline(never)
    private nonisolated(nonsending) func askActor(
        seen generation: Int, until deadline: Duration?
    ) async throws -> Joining {
        let caller = caller, urgency = caller.urgency
        return try await visit(as: caller) { try $0.askActor(seen: generation, as: urgency, until: deadline) }
    }

    @inline(never)
    private func askActor(
        _ demand: Machine.Demand? = nil, seen generation: Int, as urgency: Urgency, until deadline: Duration?
    ) throws -> Joining {
        // A caller that was cancelled on the way, or ran out of time, starts nothing.
        try Task.checkCancellation()
        if let deadline, deadline <= clock.now() { throw TokenServiceError(.deadlineExceeded) }
        let joining: Result<Joining, TokenServiceError> = step { machine, now in
            machine.retrieve(seen: generation, demand: demand, at: now)
        } admission: { result, lobby in
            result?.map { .answer($0) }
                ?? .success(.seat(Seat(self, lobby.admit(urgency: urgency, until: deadline))))
        }
        if case .success(.seat) = joining {
            raiseUrgency(to: urgency)
            if let deadline { wake(atLimit: deadline) }
        }
        return try joining.mapError { dated($0, at: clock.now()) }.get()
    }

    /// A caller's place while it waits.
    ///
    /// One object, which both handlers capture: copies of what it holds would be kept in the waiting task's frame.
    private final class Seat: Sendable {
        let service: TokenService
        let place: Place

        init(_ service: TokenService, _ place: Place) {
            self.service = service
            self.place = place
        }

        /// Resumes a task at once whose answer is there; makes the load as urgent as the task is by now.
        ///
        /// Not inlined, nor is ``answer()``: what is opaque, such as a `TaskPriority`, is allocated in the frame.
        @inline(never) func fill(with task: WaitingTask) {
            let urgency = Urgency.current
            let (waits, isRaised) = service.lobby.withLock { lobby in
                (lobby.suspend(.caller(task), at: place), lobby.raiseUrgency(of: place, to: urgency))
            }
            if isRaised { service.raiseLoad(for: urgency) }
            if !waits { task.resume() }
        }

        func raise(to urgency: Urgency) {
            if service.lobby.withLock({ $0.raiseUrgency(of: place, to: urgency) }) { service.raiseLoad(for: urgency) }
        }

        func leave() { service.leave(place, with: CancellationError()) }

        @inline(never) func answer() throws -> AccessToken { try service.lobby.withLock { $0.collectAnswer(at: place) }.get() }
    }

    /// Every caller with a place must call this: the lobby keeps an answer until the caller has collected it.
    @inline(__always)
    private nonisolated(nonsending) func wait(at seat: Seat) async throws -> AccessToken {
        await withTaskCancellationHandler {
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                await withTaskPriorityEscalationHandler {
                    await WaitingTask.suspend { seat.fill(with: $0) }
                } onPriorityEscalated: { _, priority in
                    seat.raise(to: Urgency(priority))
                }
            } else {
                await WaitingTask.suspend { seat.fill(with: $0) }
            }
        } onCancel: {
            seat.leave()
        }
        return try seat.answer()
    }

    /// Makes the load as urgent as a waiting caller that is more urgent than all others.
    private nonisolated func raiseLoad(for urgency: Urgency) {
        Task.detached(on: executor, priority: urgency.priority) {
            // Read the urgency on the actor: the waiters may have changed meanwhile.
            await self.raiseUrgency(to: self.lobby.withLock { $0.urgency })
        }
    }

    private nonisolated func leave(_ place: Place, with error: any Error) {
        lobby.withLock { $0.leave(place, with: .failure(error)) }?.resume(with: .failure(error))
    }
}

extension TokenService {
    /// Enters the actor, but never on an executor that foreign code may block.
    ///
    /// With an executor from the environment the service runs like a default actor, which runs where the task that visits it
    /// prefers to run. If caller A prefers an executor whose only thread is
    /// busy, its visit waits there, and everything behind it: caller B on the pool, and the alarm that would end B's wait. So a
    /// task with a preference of its own visits on the service's executor, and returns to its own afterwards.
    nonisolated(nonsending) func visit<Outcome: Sendable>(
        as caller: Caller? = nil, _ body: @Sendable (isolated TokenService) throws -> Outcome
    ) async rethrows -> Outcome {
        guard (caller ?? self.caller).prefersForeignExecutor else { return try await body(self) }
        return try await withTaskExecutorPreference(executor ?? globalConcurrentExecutor) { try await body(self) }
    }

    /// The facts about the calling task that the service needs.
    struct Caller {
        let urgency: Urgency
        let prefersForeignExecutor: Bool
    }

    /// The calling task.
    ///
    /// `UnsafeCurrentTask` is opaque: to copy it takes longer than to look the task up twice. Not inlined, for the same reason as
    /// a seat's functions.
    private nonisolated var caller: Caller {
        @inline(never) get {
            Caller(urgency: .current, prefersForeignExecutor: isolation != nil && prefersForeignExecutor)
        }
    }

    private nonisolated var prefersForeignExecutor: Bool {
        unsafe withUnsafeCurrentTask { task in
            guard let preferred = unsafe task?.unownedTaskExecutor else { return false }
            return executor.map { unsafe preferred != $0.asUnownedTaskExecutor() } ?? true
        }
    }
}

extension TokenService.Look {
    fileprivate init(_ hit: borrowing TokenService.Hit, _ token: AccessToken?) {
        self.init(token: token, generation: hit.generation, publication: hit.publication)
    }
}
