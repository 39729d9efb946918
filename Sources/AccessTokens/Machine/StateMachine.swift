import TokenServiceConcurrency

extension TokenService {
    /// A service's knowledge and decisions, as a pure value: it takes events and returns effects, without performing any.
    ///
    /// Every event comes with the time at which it reached the machine; the first to reach it wins. The machine relies on no
    /// timer: each event first compares the deadlines. The actor performs the effects in their order, after it has published the
    /// new ``snapshot`` for callers that don't enter the actor. Only this file writes the state.
    struct StateMachine: Sendable {
        let policy: RefreshPolicy
        let isRepeatable: Bool
        private(set) var state = State.empty
        /// Keeps the grant and does the store's work.
        private(set) var keeper: GrantKeeper
        /// The last token, once it has reached its leeway.
        ///
        /// After a transient failure it is handed out again. A refusal, a fence or another token clears it.
        private(set) var reserve: CachedToken?
        /// When the last token really expires; `nil`: never.
        private(set) var tokenEnd: Duration?
        /// Loads given up since the last fence that have not ended.
        private(set) var abandoned: [Flight] = []
        /// Loads that a fence cut off and that have not ended, in the order of their starts; those that may bring a grant go on.
        private(set) var fenced: [FencedLoad] = []
        private(set) var backOff = BackOff()
        /// Why the last refresh of the token failed.
        private var refreshError: (flight: Int, error: TokenServiceError)?
        private(set) var rejections = Rejections()
        private(set) var session = Session()
        /// Whether the service is drained, so that it starts no work that could delay the program's end.
        private(set) var isDrained = false
        /// How often a token arrived, was published or was fenced off; an older number shows that a flight's result is outdated.
        private(set) var publications = 0
        /// Whether the lobby reported with this event that a caller waits; those with a demand wait in `refreshing`, too.
        private var isAwaited = false
        /// How many flights there were.
        private(set) var flights = 0
        /// The flight that brought the last token; zero if its load was another service's or an earlier run's.
        private(set) var newest = 0
        private var loads = 0
        private var random: SplitMix64
        private var outbox = Outbox()

        /// - Parameter timeouts: ``RefreshPolicy/timeoutsUntilForgotten``; fewer in the walk.
        init(
            policy: RefreshPolicy, isRepeatable: Bool, keptIn place: GrantKeeper.Place = .memory,
            timeoutsUntilForgotten timeouts: Int = RefreshPolicy.timeoutsUntilForgotten, seed: UInt64
        ) {
            self.policy = policy
            self.isRepeatable = isRepeatable
            keeper = GrantKeeper(place, policy, isRepeatable: isRepeatable, timeoutsUntilForgotten: timeouts)
            random = SplitMix64(seed: seed)
        }
    }
}

extension TokenService.StateMachine {
    typealias Answer = Result<AccessToken, TokenServiceError>

    /// Whose tokens the service hands out.
    struct Session: Sendable {
        /// The number of the last fence (a reset or a replacement), higher than those before it.
        fileprivate(set) var generation = 0
        /// The generation that the last reset began: callers from before it get nothing.
        fileprivate(set) var lastReset = 0
        /// The generation that the first sign-in since then began.
        fileprivate var firstSignIn: Int?
        /// Distinguishes a refused request of this session from one of an earlier user.
        fileprivate var handedOut = HandedOut()

        /// Whether a session has begun since the last sign-out, by this program or another service.
        var hasBegun: Bool { generation > lastReset || !handedOut.isEmpty }
    }

    /// The effects of the current event so far.
    struct Outbox: Sendable {
        fileprivate var start: FlightStart?
        var effects: [Effect] = []
        fileprivate var answer: Answer?
        /// Whether anything listens to the events.
        fileprivate(set) var isObserved = true

        /// Announces an event.
        ///
        /// Events of work that a fence cut off are not sent, so each is of the current generation.
        @inline(never)
        mutating func announce(
            _ name: TokenEvent.Name, _ generation: Int, _ flight: @autoclosure () -> Flight? = nil,
            error: TokenServiceError? = nil
        ) {
            guard isObserved else { return }
            let flight = flight()
            let event = TokenEvent(
                name: name, generation: generation, load: flight?.load, callers: flight?.callers ?? 0, error: error)
            effects.append(.announce(event))
        }

        /// Passes a grant to the program; returns its token.
        @discardableResult
        mutating func discard(_ grant: DiscardedGrant?) -> AccessToken? {
            if let grant { effects.append(.discard(grant)) }
            return grant?.token
        }
    }

    /// The result of an event; the actor performs its parts in this order.
    struct Ending: ~Copyable, Sendable {
        /// The new snapshot for callers.
        let snapshot: TokenService.Snapshot
        /// When its token really expires; `nil`: never.
        let tokenEnd: Duration?
        /// The start of the current flight; `nil` if it has started, or there is none.
        let start: FlightStart?
        /// The number of the flight whose result may still be awaited.
        let awaitedFlight: Int?
        let effects: [Effect]
        /// The answer for all waiters; there is at most one, since afterwards there are no waiters.
        let answer: Answer?
        /// When the service can be released, if that was asked for; `nil`: not before another event.
        let idleFrom: Duration?
    }

    /// Another action for the actor.
    enum Effect: Sendable {
        case cancel(flight: Int)
        /// Perform an operation of the store; one runs at a time.
        case perform(GrantKeeper.Operation)
        /// The lender may save again what its store refused.
        case saveLentGrant
        /// The token that the service itself gave up for a fence.
        case gaveUp(AccessToken?, fence: Int)
        /// End fences, because the store has finished or is late; `givenUp`: tokens from the store that the service didn't know.
        case endFences([Int], givenUp: [AccessToken], TokenServiceError?)
        /// Pass a grant to the program for revocation.
        case discard(DiscardedGrant)
        case announce(TokenEvent)
    }
}

extension TokenService.StateMachine {
    /// Takes an event, after what happened in the lobby since the last one.
    mutating func take<Decision>(
        _ event: (inout Self, Duration) -> Decision, after notices: [TokenService.Notice], at now: Duration, joined: Int,
        isAwaited: Bool, isObserved: Bool
    ) -> Decision {
        callersJoined(joined, isAwaited: isAwaited, isObserved: isObserved)
        for notice in notices { heed(notice, at: now) }
        return event(&self, now)
    }

    /// Learns of an act of the program, which has taken effect for callers when it was made.
    @inline(never)
    mutating func heed(_ notice: TokenService.Notice, at now: Duration) {
        // The program may end a sign-in before the actor comes to it. Then the waiters haven't got the sign-in's token yet.
        if case .success(let token) = outbox.answer, notice.act.ends(token) { (outbox.answer, isAwaited) = (nil, true) }
        switch notice.act {
        case .signIn(let token): replace(with: token, number: notice.number, made: notice.time, at: now)
        case .signOut: reset(number: notice.number, made: notice.time, at: now)
        case .refusal(let token, let isToResend):
            guard !isToResend || isSessionUnknown || session.handedOut.contains(token) else { return }
            invalidate(token, at: notice.time)
            if isAwaited, state.flight == nil { goOn(callers: 0, at: now) }
        }
    }

    /// Notes the lobby's changes since the last event: callers have joined the flight of `loading`, and some may have left.
    ///
    /// - Parameter isObserved: Whether anything listens to the events.
    mutating func callersJoined(_ callers: Int, isAwaited: Bool, isObserved: Bool = true) {
        self.isAwaited = isAwaited
        outbox.isObserved = isObserved
        state.addCallers(callers)
    }

    /// Returns the effects of the last event.
    ///
    /// - Parameter tellsIdle: Whether to compute when the service can be released, for a service that is one of many.
    mutating func conclude(tellsIdle: Bool = false) -> Ending {
        // Whatever the load for a demand has come to, its callers get what there is.
        if isAwaited, state.isStalled || state.flightID == nil, let token = state.token { answerWaiters(.success(token)) }
        let ending = Ending(
            snapshot: snapshot, tokenEnd: tokenEnd, start: outbox.start, awaitedFlight: state.isStalled ? nil : state.flightID,
            effects: outbox.effects, answer: outbox.answer, idleFrom: tellsIdle ? idleFrom : nil)
        (outbox.start, outbox.effects, outbox.answer) = (nil, [], nil)
        return ending
    }

    /// The part of the state that callers need; no refresh is due while one runs.
    var snapshot: TokenService.Snapshot {
        var refreshFrom = stalledUntil, mayCheck = false
        if case .fresh(let cached) = state { (refreshFrom, mayCheck) = (refreshStart(of: cached), !isDrained) }
        if let due = keeper.nextDue(mayCheck: mayCheck) { refreshFrom = min(refreshFrom ?? due, due) }
        let token = state.token
        return TokenService.Snapshot(
            token: token, expiry: state.expiry, refreshFrom: refreshFrom, generation: session.generation,
            publication: publications, joinableUntil: state.joinableUntil, nextDeadline: nextDeadline,
            isDrained: isDrained, isSignedIn: isSignedIn)
    }

    /// The next time at which a deadline changes something for the waiters, or a load that a fence cut off is cancelled; `nil`: there
    /// is none.
    ///
    /// A stalled load is forgotten by the next caller, who needs another.
    var nextDeadline: Duration? {
        var next = state.loadDeadline
        if let ofStore = keeper.nextDeadline { next = min(next ?? ofStore, ofStore) }
        if !fenced.isEmpty, let end = fenced.first(where: { !$0.isCancelled })?.forgottenFrom { next = min(next ?? end, end) }
        return next
    }

    private mutating func announce(
        _ name: TokenEvent.Name, _ flight: @autoclosure () -> Flight? = nil, error: TokenServiceError? = nil
    ) {
        outbox.announce(name, session.generation, flight(), error: error)
    }

    private mutating func answerWaiters(_ result: Answer) {
        guard isAwaited else { return }
        isAwaited = false
        outbox.answer = result
    }

    // MARK: The token

    private mutating func install(_ cached: consuming CachedToken) {
        reserve = nil
        state.install(cached)
    }

    /// Stops handing out the token, even inside its leeway.
    private mutating func dropToken() {
        reserve = nil
        state.dropToken()
    }

    /// Drops the token if its grant was given up, since revoking the grant ends the token as well.
    private mutating func dropToken(of givenUp: AccessToken) {
        if lastToken?.isSameGrant(as: givenUp) ?? false { dropToken() }
    }

    /// The token that is handed out, or that has reached its leeway.
    var lastToken: AccessToken? { (state.cached ?? reserve)?.token }

    /// Drops the token, unless callers keep getting it although a load failed or none may start; returns that one.
    ///
    /// It is a token before its leeway or, after a transient failure, one inside it.
    private mutating func keepOrDropToken(after error: TokenServiceError, at now: Duration) -> CachedToken? {
        if let cached = state.cached, !cached.isInLeeway { return cached }
        guard error.remedy == .retry, let cached = (state.cached ?? reserve)?.inLeeway(at: now) else {
            dropToken()
            return nil
        }
        return cached
    }

    /// Returns the answer for callers that find neither a token nor a load and may not start one.
    private mutating func answer(to error: TokenServiceError, _ demand: Demand? = nil, at now: Duration) -> Answer {
        if case .loadedAfter? = demand { return .failure(error) }
        guard let cached = keepOrDropToken(after: error, at: now) else { return .failure(error) }
        install(cached)
        return .success(cached.token)
    }

    // MARK: Time

    /// Compares the deadlines with the time: the token's, the load's, then the store's.
    ///
    /// - Parameter isFence: Whether a fence follows, whose own save or removal supersedes one that failed.
    mutating func elapse(to now: Duration, isFence: Bool = false) {
        expireToken(at: now)
        timeOutFlight(at: now)
        forgetStalledFlight(at: now)
        if !fenced.isEmpty { cancelForgottenLoads(at: now) }
        if keeper.hasStore || keeper.isBehind { timeOutStore(at: now, isFence: isFence) }
    }

    mutating func expireToken(at now: Duration) {
        guard let expiry = state.expiry, expiry <= now else { return }
        reserve = state.cached
        state.dropToken()
        // A refused token that the limit on loads kept in use makes way for a load, which counts.
        guard reserve?.forRetry != nil, rejections.limit(at: expiry) == nil, state.flight?.isCheck ?? true else { return }
        rejections.markNextLoad()
    }

    /// Times out the current load.
    mutating func timeOutFlight(at now: Duration) {
        guard let deadline = state.loadDeadline, deadline <= now, let flight = state.flight else { return }
        if isRepeatable || flight.hasOldGrant {
            abandon(flight, TokenServiceError(.loadTimedOut), at: now)
            // Not a load with an old lent grant: it may have restarted with the new one.
            if isRepeatable { outbox.effects.append(.cancel(flight: flight.id)) }
        } else {
            state = .stalled(state.cached, flight)
            fail(TokenServiceError(.loadTimedOut), of: flight, at: now)
        }
    }

    /// Forgets a load that stalled long ago and may never end: the next caller starts another, as a restarted program would.
    ///
    /// Not with a shared grant: the flight may hold a token that the record doesn't have yet.
    mutating func forgetStalledFlight(at now: Duration) {
        if let end = stalledUntil, end <= now { forgetStalledFlight() }
    }

    private mutating func forgetStalledFlight() {
        guard state.isStalled, let flight = state.flight else { return }
        giveUp(flight)
        outbox.effects.append(.cancel(flight: flight.id))
    }

    /// Cancels the loads that a fence let go on, once nothing waits for them any longer.
    private mutating func cancelForgottenLoads(at now: Duration) {
        for index in fenced.indices where !fenced[index].isCancelled && fenced[index].forgottenFrom <= now {
            fenced[index].isCancelled = true
            outbox.effects.append(.cancel(flight: fenced[index].id))
        }
    }

    mutating func timeOutStore(at now: Duration, isFence: Bool = false) {
        for report in keeper.elapse(to: now, repeats: !isFence, &outbox) { ended(report.outcome, by: report.flight, at: now) }
    }

    private mutating func abandon(_ flight: Flight, _ error: TokenServiceError, at now: Duration) {
        giveUp(flight)
        fail(error, of: flight, at: now)
    }

    private mutating func giveUp(_ flight: consuming Flight) {
        state.endFlight()
        flight.isGivenUp = true
        abandoned.append(flight)
    }

    // MARK: Callers

    /// Handles callers that found neither a token nor a flight in the lobby; `nil`: they wait for the flight.
    ///
    /// - Parameters:
    ///   - seen: The generation when they called: callers from before a reset must not start a load after it.
    ///   - demand: What they ask of the token, besides that it is valid.
    mutating func retrieve(callers: Int = 1, seen: Int, demand: Demand? = nil, at now: Duration) -> Answer? {
        elapse(to: now)
        guard seen >= session.lastReset else { return .failure(TokenServiceError(.reset)) }
        if let demand, let cached = state.cached, !isMet(demand, by: cached, at: now) {
            return renew(cached, for: demand, callers: callers, at: now)
        }
        switch state {
        case .fresh(let cached):
            refreshAhead(at: now)
            return .success(cached.token)
        case .refreshing(let cached, _), .stalled(let cached?, _): return .success(cached.token)
        case .stalled(nil, _): return answer(to: TokenServiceError(.loadTimedOut), demand, at: now)
        case .loading:
            state.addCallers(callers)
            return nil
        case .empty:
            if let error = obstacle(at: now) {
                guard !isDrained, keeper.checksInstead(at: now) else { return answer(to: error, demand, at: now) }
                check(callers, at: now)
            } else if !keeper.isUnread {
                startLoad(callers: callers, at: now)
            } else if keeper.isLate {
                return .failure(keeper.readIsLate)
            } else {
                check(callers, at: now)
            }
            return nil
        }
    }

    private func isMet(_ demand: Demand, by cached: CachedToken, at now: Duration) -> Bool {
        switch demand {
        case .validFor(let minimum): cached.token.isGood(for: minimum, until: tokenEnd, at: now)
        case .loadedAfter(let flight): newest > flight
        }
    }

    /// Handles callers whose demand the token that others get doesn't meet; `nil`: they wait for a load.
    ///
    /// If none may start, a wish for a longer lifetime is dropped. A load that a call insists on counts as one that a refusal
    /// causes.
    private mutating func renew(_ cached: CachedToken, for demand: Demand, callers: Int, at now: Duration) -> Answer? {
        // A read of the service's own store is the beginning of a load.
        let isRunning = state.flight.map { !$0.isCheck || !keeper.isShared } ?? false
        if isRunning, !state.isStalled {
            state.addCallers(callers)
            return nil
        }
        let obstacle = state.isStalled ? TokenServiceError(.loadTimedOut) : obstacle(at: now)
        switch demand {
        case .validFor:
            guard obstacle == nil, !cached.isPaused(at: now), !spendsGrant || !keeper.isBehind else {
                return .success(cached.token)
            }
        case .loadedAfter(let flight):
            if let obstacle { return .failure(obstacle) }
            // A load that began after the call has failed, or the grant was refused.
            if let (failed, error) = refreshError, failed > flight || error.remedy == .signIn { return .failure(error) }
            if let opens = rejections.limit(at: now) {
                return .failure(TokenServiceError(.tooManyInvalidations, remedy: .retry).holding(until: opens))
            }
            rejections.markNextLoad()
        }
        // A check of the shared record brings only what others have loaded.
        if let check = state.flight { giveUp(check) }
        startLoad(callers: callers, at: now)
        return nil
    }

    /// Starts a refresh or a store check, because a caller noticed that the soft window has begun or that the last check is too
    /// old.
    mutating func refreshAhead(at now: Duration) {
        elapse(to: now)
        guard !isDrained, case .fresh(var cached) = state else { return }
        guard refreshStart(of: cached).map({ $0 <= now }) ?? false else {
            // The token is good, but another service may have signed out, or saved a later one.
            if let next = keeper.nextCheck, next <= now { check(0, at: now) }
            return
        }
        if isCrowded(at: now) {
            cached.refreshFrom = now + RefreshPolicy.refreshPause(afterFailures: 1, jitter: random.jitter())
            state = .fresh(cached)
        } else {
            startLoad(callers: 0, at: now)
        }
    }

    /// Asks the store: at the first miss, for the token of an earlier run; later, if services share it, for a newer one, and before
    /// a load that spends a refresh token, whether another service has done so.
    private mutating func check(_ callers: Int, at now: Duration) {
        var flight = newFlight(.checking, callers: callers, at: now)
        if let deadline = keeper.read(for: flight.id, at: now, &outbox) {
            flight.deadline = deadline
        } else {
            outbox.start = FlightStart(flight)
        }
        state.begin(flight)
    }

    private mutating func newFlight(
        _ phase: Phase = .loading, callers: Int, until limit: Duration? = nil, at now: Duration
    ) -> Flight {
        flights += 1
        let limit = limit ?? now + policy.loadTimeout
        return Flight(
            id: flights, generation: session.generation, start: now, limit: limit, deadline: limit, publications: publications,
            callers: callers, phase: phase)
    }

    /// Why no load may start now.
    private func obstacle(at now: Duration) -> TokenServiceError? {
        if isDrained { return TokenServiceError(.drained) }
        if let error = backOff.obstacle(at: now) ?? rejections.obstacle(at: now) { return error }
        return isCrowded(at: now) ? TokenServiceError(.loadTimedOut) : nil
    }

    /// Starts a load, for callers or ahead of the token's expiry.
    ///
    /// - Parameter limit: That of the check before it; `nil`: one of its own.
    private mutating func startLoad(callers: Int, until limit: Duration? = nil, at now: Duration) {
        if spendsGrant {
            keeper.saveAgain(at: now, &outbox)
            // After a check the store has just been read.
            if limit == nil, keeper.readsFirst { return check(callers, at: now) }
        }
        rejections.loadStarts(at: now)
        loads += 1
        var flight = newFlight(callers: callers, until: limit, at: now)
        (flight.load, flight.previous) = (loads, keeper.grant.token)
        outbox.start = FlightStart(flight)
        if outbox.isObserved {
            announce(
                state.cached == nil ? .loadStarted : .refreshStarted, flight, error: spendsGrant ? keeper.unsaved?.error : nil)
        }
        state.begin(flight)
    }

    // MARK: Questions

    /// Takes the question whether a user is signed in; `nil`: the store is being asked, which the question began if necessary.
    ///
    /// No caller waits for that restore, so it is followed by no load, unless one joins it.
    mutating func askSignInState(at now: Duration) -> SignInState? {
        elapse(to: now)
        if keeper.isUnread, !backOff.isClosed, case .empty = state {
            if let error = obstacle(at: now) ?? (keeper.isLate ? keeper.readIsLate : nil) {
                return SignInState(.unknown, error: error)
            }
            check(0, at: now)
        }
        return signInState
    }

    /// Whether a user is signed in, as far as this service alone can tell; `nil`: the store is being asked.
    var signInState: SignInState? {
        if state.token != nil { return SignInState(.validToken) }
        if backOff.isClosed { return SignInState(.signedOut, error: backOff.lastError) }
        if keeper.isUnread { return state.flight == nil ? SignInState(.unknown, error: keeper.readError) : nil }
        return SignInState(hasGrant ? .signedIn : .signedOut)
    }

    private var hasGrant: Bool { keeper.grant.token?.refreshToken != nil || state.isSaving }

    /// The same for callers that don't enter the actor; `nil`: memory doesn't tell.
    private var isSignedIn: Bool? {
        if backOff.isClosed { return keeper.isShared ? nil : false }
        if keeper.isUnread { return nil }
        return hasGrant ? true : keeper.isShared || keeper.isLent ? nil : false
    }

    // MARK: Loads

    /// Takes the end of a flight, of its load or of the save that followed.
    mutating func ended(_ outcome: FlightOutcome, by id: Int, at now: Duration) {
        expireToken(at: now)
        // Handle the result before comparing the flight's deadline: a late result still counts.
        defer { elapse(to: now) }
        keeper.checked(at: now)
        let wasStalled = state.isStalled
        switch outcome {
        case .overdue:
            if state.flightID == id, let flight = state.flight { abandon(flight, keeper.readIsLate, at: now) }
            return
        case .signedOut(let isOfSession): return recordSignedOut(isOfSession, by: id, at: now)
        default: break
        }
        // A shared record's session hands over itself what its flights bring.
        guard var flight = endFlight(id, bringing: keeper.isShared ? nil : outcome.issued) else { return }
        switch outcome {
        case .loaded(let token): keep(token, of: &flight, at: now)
        case .saved(let failure):
            guard case .saving(let token, let origin) = flight.phase else { return }
            // A save that fails is reported as an event and doesn't fail the callers.
            if let failure { announce(.storeFailed, flight, error: failure.error) }
            accept(token, of: flight, from: origin, at: now)
        case .found(let token, let age, let isOfOther):
            // What waits or was handed out may be another user's.
            if isOfOther { cutOff(endSession()) }
            found(token, age: age, by: flight, at: now)
        // Gives up no grant: one that is no longer in the record was spent, or reported by the service that replaced it.
        case .token(let token, let age, let isAdopted):
            flight.start = now - age
            flight.isCostly = !isAdopted && token.refreshToken != nil
            if !isAdopted { rejections.forget(token, loadedBy: flight) }
            _ = keeper.grant.put(token, .replaced)
            accept(token, of: flight, from: isAdopted ? .otherService : .loader, at: now)
        case .failed(let failure):
            flight.isCostly = failure.salvaged != nil
            // A shared record has it already.
            let newGrant = keeper.isShared ? nil : failure.salvaged
            if let newGrant, keepGrant(newGrant, bringsToken: false, of: flight) {
                _ = keeper.save(newGrant, from: flight.start, for: nil, at: now, &outbox)
                forgetOvertakenSaves()
            }
            guard !flight.isGivenUp || endsSession(failure.error, of: flight) else { return }
            // The time-out was already counted; only a lasting failure, a new grant or a `Retry-After` changes anything now.
            let (error, retryAfter) = (failure.error, RefreshPolicy.honoured(retryAfter: failure.retryAfter))
            guard !wasStalled || error.isLasting || newGrant != nil || retryAfter != nil else { return }
            fail(error, of: flight, retryAfter: retryAfter, at: now)
        case .newGrant: tryNewGrant(after: flight, at: now)
        case .gaveUp: goOn(after: flight, at: now)
        case .overdue, .signedOut: break
        }
    }

    /// Ends the session, because a flight found that another service has signed out.
    private mutating func recordSignedOut(_ isOfSession: Bool, by id: Int, at now: Duration) {
        let isPending = state.flightID == id || abandoned.contains { $0.id == id }
        let flight = endFlight(id)
        if isOfSession || session.hasBegun {
            // Even if the flight was given up and tokens arrived since: they all belong to the ended session.
            if isPending { endSharedSession() }
        } else if let flight, !flight.isGivenUp {
            tryNewGrant(after: flight, at: now)
        }
    }

    /// Continues after a check that found another grant than the one that failed.
    private mutating func tryNewGrant(after flight: Flight, at now: Duration) {
        backOff = BackOff()
        reserve = nil
        goOn(after: flight, at: now)
    }

    /// Keeps what a load brought; if there is a store, it is saved before any caller gets it.
    private mutating func keep(_ token: AccessToken, of flight: inout Flight, at now: Duration) {
        flight.isCostly = token.refreshToken != nil && token.refreshToken != flight.previous?.refreshToken
        rejections.forget(token, loadedBy: flight)
        // Keep the grant first: a rotated refresh token must survive whatever is wrong with its access token.
        let isGrant = !token.isUnusable || token.refreshToken != nil
        // Whether the token is usable matters only if another grant has arrived meanwhile.
        let bringsToken = keeper.grant.isUsedUp(by: flight.previous) || isServable(token, by: flight, at: now)
        guard isGrant, keepGrant(token, bringsToken: bringsToken, of: flight),
            keeper.save(token, from: flight.start, for: flight.id, at: now, &outbox)
        else { return accept(token, of: flight, at: now) }
        // Callers that arrive meanwhile wait for the save.
        hold(token, in: &flight, from: .loader, at: now)
        if flight.isGivenUp {
            abandoned.append(flight)
        } else {
            state.begin(flight)
        }
    }

    /// Lets a flight wait until its token is saved.
    private mutating func hold(_ token: AccessToken, in flight: inout Flight, from origin: Origin, at now: Duration) {
        publications += 1
        flight.hold(token, from: origin, publication: publications, at: now)
        forgetOvertakenSaves()
    }

    /// Forgets the older flights whose save a later one has superseded before it began.
    private mutating func forgetOvertakenSaves() {
        abandoned.removeAll { flight in
            flight.savedToken != nil && !keeper.operations.contains { $0.flight == flight.id }
        }
    }

    /// Hands out the token of an earlier run, or loads another if it is too old.
    private mutating func found(_ token: AccessToken, age: Duration, by flight: Flight, at now: Duration) {
        _ = keeper.grant.put(token, .replaced)
        session.handedOut.note(token)
        let cached = CachedToken(restored: token, age: age, at: now, policy: policy, jitter: random.jitter())
        tokenEnd = cached.realEnd
        if !token.isUnusable, !rejections.contains(token, at: now) {
            if cached.isValid(at: now) {
                install(cached)
                return publish(token, of: flight, from: .otherService)
            }
            reserve = cached
        }
        goOn(after: flight, at: now)
    }

    private mutating func endSharedSession() {
        _ = keeper.grant.put(nil, .signedOut)
        cutOff(endSession())
    }

    /// Ends a session that another service has ended, as a sign-in or a sign-out found in the shared store.
    mutating func sharedSessionEnded(_ end: SessionEnd) {
        guard case .beforeSignIn(let number, let isKnown) = end else {
            if session.hasBegun { endSharedSession() }
            return
        }
        let token = lastToken ?? state.flight?.savedToken ?? keeper.grant.token
        // The program may have signed out itself since, or there was no session before the sign-in.
        let isFirst = session.firstSignIn.map { $0 >= number } ?? true
        guard number > session.lastReset, isKnown || !isFirst || session.handedOut.hasOther(than: token) else { return }
        beginSession()
        if let token { session.handedOut.note(token) }
        announce(.reset)
        answerWaiters(.failure(TokenServiceError(.reset)))
    }

    /// Keeps the shared record's token, which is inside its leeway: callers get it if the flight fails for a transient reason.
    mutating func keepInReserve(_ token: AccessToken, age: Duration, of id: Int, at now: Duration) {
        guard state.flightID == id, state.token == nil, !rejections.contains(token, at: now) else { return }
        session.handedOut.note(token)
        reserve = CachedToken(restored: token, age: age, at: now, policy: policy, jitter: random.jitter())
        (tokenEnd, publications) = (reserve?.realEnd, publications + 1)
    }

    /// Discards a grant that a fence displaced from the shared store, or that a flight brought and the store can't hold.
    ///
    /// - Returns: The token that a fence gave up with it.
    @discardableResult
    mutating func displaced(_ last: DiscardedGrant) -> AccessToken? {
        guard last.reason == .superseded else { return outbox.discard(keeper.grant.giveUp(last.token, last.reason)) }
        // Another service has overtaken it.
        outbox.discard(keeper.grant.handOver(last.token, last.reason))
        dropToken(of: last.token)
        return nil
    }

    /// Continues after a flight that had no result: callers that wait need a load, unless it must wait.
    private mutating func goOn(after flight: Flight, at now: Duration) {
        guard !flight.isGivenUp else { return }
        if flight.load != nil { announce(.loadDropped, flight) }
        if var cached = state.cached {
            // A check made while the token is good must not postpone the token's refresh, which may have waited for it.
            guard flight.isLoading else { return refresh(after: flight, at: now) }
            cached.postponeRefresh(at: now)
            return install(cached)
        }
        guard flight.isCheck, !keeper.isShared else { return goOn(callers: flight.callers, at: now) }
        // The computer slept meanwhile: a load would be late from its start.
        guard now < flight.limit || !isAwaited else { return fail(keeper.readIsLate, of: flight, at: now) }
        goOn(callers: flight.callers, until: flight.limit, at: now)
    }

    /// Continues a refresh after the store was read for it, unless a token has arrived meanwhile.
    private mutating func refresh(after check: Flight, at now: Duration) {
        guard check.isCheck, !keeper.isShared, !isDrained, check.publications == publications, now < check.limit else { return }
        // A save that was lost may have ended meanwhile, so that the last one is repeated.
        guard isAwaited || !spendsGrant || !keeper.isBehind else { return }
        startLoad(callers: check.callers, until: check.limit, at: now)
    }

    /// Starts a load for callers that need one, or with a grant that came without a usable token.
    private mutating func goOn(
        callers: Int, withNewGrant isNewGrant: Bool = false, until limit: Duration? = nil, at now: Duration
    ) {
        guard isAwaited || isNewGrant && !isTooEarly(at: now) else { return }
        if let error = obstacle(at: now) { return answerWaiters(answer(to: error, at: now)) }
        startLoad(callers: callers, until: limit, at: now)
    }

    /// Whether a given-up load's late refusal shows that the current grant is invalid.
    ///
    /// If a newer load used the same grant, that may be the only reason for the refusal; the newer load's result decides.
    private func endsSession(_ error: TokenServiceError, of flight: Flight) -> Bool {
        error.remedy == .signIn && state.flight == nil && keeper.grant.isUsedUp(by: flight.previous)
    }

    /// Keeps a load's new grant, unless one that arrived meanwhile is more useful.
    private mutating func keepGrant(_ token: AccessToken, bringsToken: Bool, of flight: Flight) -> Bool {
        let (isKept, givenUp) = keeper.grant.keep(
            token, using: flight.previous, bringsToken: bringsToken,
            beside: abandoned.map(\.savedToken) + [state.cached?.token])
        if let last = outbox.discard(givenUp) { dropToken(of: last) }
        return isKept
    }

    /// Answers the waiters with a token, and hands it out from now on as long as it is valid.
    @inline(never)
    private mutating func accept(_ token: AccessToken, of flight: Flight, from origin: Origin = .loader, at now: Duration) {
        if rejections.contains(token, at: now) { return acceptRefused(token, of: flight, from: origin, at: now) }
        var flaw = flaw(of: token, by: flight, at: now)
        if flaw == nil {
            let cached = CachedToken(token, from: flight.start, at: now, policy: policy, jitter: random.jitter())
            if cached.isValid(at: now) {
                tokenEnd = cached.realEnd
                install(cached)
            } else if state.token == nil {
                tokenEnd = cached.realEnd
                reserve = cached
            } else {
                // The new token is already within its leeway while the current one is good, so the refresh gained nothing.
                flaw = TokenServiceError(.tokenExpiredOnArrival)
            }
        }
        if let flaw {
            guard !flight.isGivenUp else { return }
            // The program passed this token, and it expired while it was being saved: only its grant remains.
            if origin == .program, flaw.code == .tokenExpiredOnArrival {
                return goOn(callers: flight.callers, withNewGrant: true, at: now)
            }
            return fail(flaw, of: flight, at: now)
        }
        publish(token, of: flight, from: origin)
    }

    private mutating func publish(_ token: AccessToken, of flight: Flight, from origin: Origin) {
        publications += 1
        newest = origin == .otherService ? 0 : flight.id
        refreshError = nil
        session.handedOut.note(token)
        backOff = BackOff()
        if outbox.isObserved, origin != .program {
            var event = flight
            if flight.isGivenUp { event.callers = state.flight?.callers ?? 0 }
            announce(origin == .loader ? .loadSucceeded : .restored, event)
        }
        answerWaiters(.success(token))
    }

    /// Takes a token that was refused while its load or its save was under way, or that another service handed out before.
    ///
    /// Another load follows, and counts as one that a refusal causes. If it may not start yet, the token stays in use.
    private mutating func acceptRefused(_ token: AccessToken, of flight: Flight, from origin: Origin, at now: Duration) {
        guard !flight.isGivenUp else { return }
        if state.cached == nil, let opens = rejections.limit(at: now) {
            var cached = CachedToken(token, from: flight.start, at: now, policy: policy, jitter: random.jitter())
            let realEnd = cached.realEnd
            cached.survive(until: opens)
            if let token = cached.forRetry, cached.isValid(at: now) {
                tokenEnd = realEnd
                install(cached)
                return publish(token, of: flight, from: origin)
            }
        }
        rejections.markNextLoad()
        goOn(after: flight, at: now)
    }

    /// Counts the failure of a flight that just ended: as a failed refresh if there is a token, else for the back-off.
    private mutating func fail(_ error: TokenServiceError, of flight: Flight, retryAfter: Duration? = nil, at now: Duration) {
        let hadToken = state.token != nil
        guard var cached = keepOrDropToken(after: error, at: now) else {
            let error = backOff.record(
                error, of: isRepeatable ? nil : flight.id, retryAfter: retryAfter, isCostly: flight.isCostly,
                jitter: random.jitter(), at: now)
            announce(flight.load == nil && error.code == .storeFailed ? .storeFailed : .loadFailed, flight, error: error)
            return answerWaiters(.failure(error))
        }
        // An older load brought a token while this one ran, so no caller waits for it.
        if hadToken, flight.publications != publications { return announce(.refreshFailed, flight, error: error) }
        let error = cached.refreshFailed(
            error, of: isRepeatable ? nil : flight.id, retryAfter: retryAfter, isCostly: flight.isCostly, backOff: &backOff,
            random: &random, at: now)
        refreshError = (flight.id, error)
        announce(.refreshFailed, flight, error: error)
        answerWaiters(.success(cached.token))
        install(cached)
    }

    /// Takes a flight that ended out of the state.
    ///
    /// Returns `nil` if its result doesn't count, because something was published or fenced off since it began; a token that it
    /// brought is then passed to the program.
    private mutating func endFlight(_ id: Int, bringing token: AccessToken? = nil) -> Flight? {
        if let flight = state.flight, flight.id == id {
            state.endFlight()
            return flight
        }
        var reason = DiscardedGrant.Reason.superseded
        if let index = abandoned.firstIndex(where: { $0.id == id }) {
            let flight = abandoned.remove(at: index)
            if flight.publications == publications { return flight }
        } else if let index = fenced.firstIndex(where: { $0.id == id }) {
            reason = fenced.remove(at: index).generation < session.lastReset ? .signedOut : .replaced
        } else {
            return nil
        }
        if let token { outbox.discard(keeper.grant.turnAway(token, reason)) }
        return nil
    }

    // MARK: Refusals and fences

    /// Remembers a token that a resource server refused, and drops it if it is the current one.
    ///
    /// While refusals may cause no load it stays in use: one server's refusal must not stop the requests that another accepts.
    mutating func invalidate(_ token: AccessToken, at now: Duration) {
        elapse(to: now)
        // A token made from a header's text has no lifetime, but no token of this session outlives the last one.
        let until = tokenEnd.map { max($0, now + RefreshPolicy.invalidationPeriod) }
        rejections.remember(token, afterLoads: loads, until: until, at: now)
        if reserve?.token.value == token.value { reserve = nil }
        guard var cached = state.cached, cached.token.value == token.value else { return }
        // A running load predates the refusal. A load that follows a store check counts against the limit.
        let causesLoad = state.flight.map(\.isCheck) ?? true
        if causesLoad || state.isStalled, let opens = rejections.limit(at: now) {
            guard cached.forRetry == nil else { return }
            cached.survive(until: opens)
            install(cached)
            return announce(.invalidated, error: TokenServiceError(.tooManyInvalidations).holding(until: opens))
        }
        dropToken()
        if causesLoad { rejections.markNextLoad() }
        announce(.invalidated)
    }

    /// Handles a refused request that is to be sent again.
    ///
    /// With a shared grant, the generation's sign-in may not yet have found another service's sign-out in the store; then the
    /// request belongs to the session before it.
    mutating func retrieve(insteadOf refused: AccessToken, at now: Duration) -> Resending {
        let seen = keeper.isShared ? session.lastReset : session.generation
        guard session.handedOut.contains(refused) else {
            return isSessionUnknown ? .afterRestore(generation: seen) : .tooLate
        }
        let isRetry = state.cached?.forRetry.map { $0.isIdentical(to: refused) } ?? false
        invalidate(refused, at: now)
        guard let cached = state.cached else { return .wait(generation: seen) }
        guard let token = cached.forRetry, token.value == refused.value else { return .with(cached.token) }
        guard isRetry, let opens = rejections.limit(at: now) else { return .with(token) }
        return .refusedTwice(TokenServiceError(.tooManyInvalidations).holding(until: opens))
    }

    /// Signs out: calls that start afterwards see nothing from before.
    ///
    /// - Parameters:
    ///   - number: The generation that it begins; `nil`: the next one.
    ///   - moment: When it was made; `nil`: now.
    mutating func reset(number: Int? = nil, made moment: Duration? = nil, at now: Duration) {
        elapse(to: moment ?? now, isFence: true)
        let flight = endSession(number)
        _ = keeper.fence(.remove, at: now, &outbox)
        cutOff(flight)
    }

    private mutating func endSession(_ number: Int? = nil) -> Flight? {
        let flight = fence(number)
        beginSession()
        announce(.reset)
        answerWaiters(.failure(TokenServiceError(.reset)))
        return flight
    }

    /// Forgets the tokens of the session that has ended.
    private mutating func beginSession() {
        (session.lastReset, session.firstSignIn) = (session.generation, nil)
        session.handedOut = HandedOut()
    }

    /// Installs a new token for the same principal.
    ///
    /// The token's lifetime counts from `moment`, the limits of what follows from `now`: the machine may have slept in between.
    mutating func replace(with token: AccessToken, number: Int? = nil, made moment: Duration? = nil, at now: Duration) {
        let start = moment ?? now
        elapse(to: start, isFence: true)
        keeper.checked(at: now)
        let ended = fence(number)
        if session.firstSignIn == nil { session.firstSignIn = session.generation }
        // The program has this token already, whether or not the service hands it out.
        session.handedOut.note(token)
        announce(.replaced)
        let isExpired = token.isUnusable || token.lifetime.map { $0 <= now - start } ?? false
        var flight = newFlight(callers: isAwaited ? ended?.callers ?? 0 : 0, at: now)
        // Callers keep waiting until the token is saved or, if it has expired, for the load that uses its grant.
        flight.start = start
        if keeper.fence(.save(token, start: start), for: isExpired ? nil : flight.id, at: now, &outbox) {
            hold(token, in: &flight, from: .program, at: now)
            state = .loading(flight)
        } else if !isExpired {
            let cached = CachedToken(token, from: start, at: now, policy: policy, jitter: random.jitter())
            state = .fresh(cached)
            (newest, tokenEnd) = (flight.id, cached.realEnd)
            answerWaiters(.success(token))
        } else {
            goOn(callers: flight.callers, withNewGrant: true, at: now)
        }
        cutOff(ended)
    }

    /// Ends every pause and the refusal of the grant, because the user asked to try again.
    mutating func retryNow(at now: Duration) {
        elapse(to: now)
        keeper.saveAgain(at: now, &outbox)
        backOff.reopen()
        refreshError = nil
        guard var cached = state.cached else { return }
        cached.endPause()
        install(cached)
    }

    /// Handles a sign-in through another key that uses the same grant: ends every pause, and a load with the old grant no longer
    /// blocks others.
    ///
    /// A stalled load doesn't get the new grant, since its time is over.
    mutating func lentGrantReplaced(at now: Duration) {
        retryNow(at: now)
        forgetStalledFlight()
        state.noteReplacedGrant()
    }

    /// Learns what the store of the lent grant, or a shared record, has yet to save.
    mutating func noteUnsaved(_ unsaved: FailedWrite?, at now: Duration) {
        elapse(to: now)
        keeper.noteUnsaved(unsaved)
    }

    /// Stops starting loads, refreshes and store checks, because the program is about to end, or starts them again.
    ///
    /// What couldn't be saved is saved again.
    mutating func drain(_ isDrained: Bool = true, at now: Duration) {
        self.isDrained = isDrained
        guard isDrained else { return }
        // An operation may count as lost only now.
        elapse(to: now)
        keeper.saveAgain(at: now, &outbox)
    }

    /// Cuts off everything that began before; returns the flight that this ended.
    private mutating func fence(_ number: Int?) -> Flight? {
        session.generation = number ?? session.generation + 1
        publications += 1
        keeper.noteFence(session.generation)
        (backOff, refreshError) = (BackOff(), nil)
        rejections = Rejections()
        let flight = state.flight
        // A flight that asks the server may still bring a grant to revoke; one that asks the store is forgotten, and so is one
        // whose task hasn't even started.
        if let flight, outbox.start == nil { abandoned.append(flight) }
        outbox.start = nil
        for load in abandoned where load.isLoading { fenced.append(FencedLoad(load, forgottenFrom: endOfPatience(with: load))) }
        abandoned = []
        reserve = nil
        state = .empty
        return flight
    }

    /// Cancels a load that a fence cut off, unless it may bring a grant: its response has to be read, so that the program can revoke
    /// that grant.
    private mutating func cutOff(_ load: Flight?) {
        guard let load, load.isLoading, isRepeatable, !keeper.isLent, load.previous?.refreshToken == nil else { return }
        outbox.effects.append(.cancel(flight: load.id))
    }

    // MARK: The store

    /// Takes the end of a store's operation, in time or late; the keeper says what it means for a flight.
    mutating func storeEnded(
        _ operation: GrantKeeper.Operation, found: Found?, givenUp: [AccessToken] = [], _ failure: FlightFailure?,
        at now: Duration
    ) {
        expireToken(at: now)
        defer { elapse(to: now) }
        let report = keeper.ended(operation, found: found, givenUp: givenUp, failure, at: now, &outbox)
        if let report { ended(report.outcome, by: report.flight, at: now) }
    }
}
