import TokenServiceConcurrency

/// Access to a shared record, which a service that shares its grant uses in place of a store of its own.
///
/// Only `AccessTokensSharing` implements it, so a program without shared grants doesn't link that code. `reset` and `replace`
/// treat it like any token store; flights go through ``perform(_:)``.
package protocol GrantSession: AnyObject, TokenStore {
    /// How often callers check whether other services have signed out; `nil`: only when they need a token.
    var checkEvery: Duration? { get }

    /// When the service can be released without a loss; `nil` until the store has the last sign-in or sign-out.
    var idleFrom: Duration? { get }

    /// Whether the session is working on the record while no flight waits for it.
    var isAtWork: Bool { get }

    /// Whether the record has yet to get the last sign-in or sign-out.
    var isBehind: Bool { get }

    /// Notes that a sign-in or, without a token, a sign-out takes effect; the record must show it before any later load begins.
    func noteFence(_ token: StoredToken?, number: Int)

    /// The user asked to try again.
    func noteRetry()

    /// Returns the grants that fences displaced from the record, each only once, to be handed over.
    func takeDisplaced() -> [DiscardedGrant]

    /// Returns, only once, the end of a session by another service, if a fence found one.
    func takeEnd() -> SessionEnd?

    /// Returns whether a user is signed in, according to the last sign-in or sign-out here or else to the record, which it reads.
    @concurrent func signInState(_ plan: SharedFlightPlan) async -> SignInState

    /// Performs a flight, which is never cancelled.
    @concurrent func perform(_ flight: SharedFlightRun) async -> SharedFlightEnd
}

/// A session that another service has ended, as this service's sign-in or sign-out found in the shared record.
package enum SessionEnd: Sendable {
    /// The session before this service's sign-in with this number; the sign-in's own session continues.
    ///
    /// `isKnown`: whether the record had shown the ended session.
    case beforeSignIn(Int, isKnown: Bool)
    /// The session since the last sign-in or sign-out ended: another service has signed in or out since.
    case overtaken
}

/// Creates a service's session, on the service's own clock.
package typealias GrantSessionMaker = @Sendable (ServiceClock, TokenService.Environment) -> any GrantSession

/// What a session has to know of its service: how a flight begins or, without one, what a question is about.
package struct SharedFlightPlan: Sendable, Hashable {
    /// The number of the flight among those of the service.
    package var id = 0
    package var policy = RefreshPolicy()
    package var isRepeatable = false
    /// The time on the service's clock at which the callers' wait ends; `nil`: never.
    package var deadline: Duration?
    /// Whether callers keep getting the current token, so that none of them waits.
    package var isRefresh = false
    /// Whether the service has a token that is good, even if a caller waits for another.
    package var hasToken = false
    /// Whether the flight only reads what other services have written, and writes and loads nothing, because the service is
    /// backing off or its token is good.
    package var isCheck = false
    /// The token to replace, as the service remembers it; a repeatable load presents it if the record can't be read.
    package var previous: AccessToken?
    /// The key that the loader's tokens are bound to.
    package var keyThumbprint: String?
    /// Tokens that resource servers refused.
    package var refused: [String] = []

    package init() {}
}

/// A flight that a session performs, with what it may ask of its service.
package struct SharedFlightRun: Sendable {
    package let plan: SharedFlightPlan
    fileprivate let service: TokenService
    fileprivate let generation: Int
    fileprivate let membership: LoadMembership

    /// Whether nothing waits for the flight any longer, because of a fence, its limit or a drain.
    package var isAbandoned: Bool { membership.hasEnded || service.isDeserted }

    /// Gives the service the record's token, which is inside its leeway, and the time since its load began.
    package func keepInReserve(_ token: AccessToken, age: Duration) async {
        await service.step { $0.keepInReserve(token, age: age, of: plan.id, at: $1) }
    }

    /// Runs the loader in its own task, which a fence or a limit may cancel.
    ///
    /// - Parameter end: Until when it may send its request, on the service's clock, if that is before the deadline.
    package func load(replacing previous: AccessToken?, sendingBy end: Duration?) async -> Result<AccessToken, any Error> {
        membership.sendingEnd.withLock { $0 = end }
        return await service.load(replacing: previous, for: plan.id, membership)
    }

    /// Passes grants displaced by fences to the program, unless a store operation reports them to the callers of the fences.
    ///
    /// - Returns: Whether the flight's session is still the current one.
    package func handOverDisplaced() async -> Bool { await service.handOverDisplaced(forFlightOf: generation) }
}

/// How a flight that a session performed has ended.
package struct SharedFlightEnd: Sendable {
    package let outcome: FlightOutcome
    /// A token that the flight brought and that the record can't hold; to be revoked.
    package let discarded: AccessToken?
    /// Records another service's sign-out as known; not called if a fence has come since, so that the next read finds it again.
    package let learns: (@Sendable () -> Void)?
    /// Work that no caller waits for, but that keeps the service alive until it has finished.
    package var afterwards: (@Sendable () async -> Void)?

    package init(_ outcome: FlightOutcome, discarded: AccessToken?, learns: (@Sendable () -> Void)? = nil) {
        self.outcome = outcome
        self.discarded = discarded
        self.learns = learns
    }
}

extension TokenService {
    /// Creates a service that shares its grant.
    package init(
        policy: RefreshPolicy, session: @escaping GrantSessionMaker, environment: Environment,
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)?, loader: any TokenLoader
    ) {
        let clock = ServiceClock.opened(environment.clock)
        self.init(
            policy: policy, environment: environment, clock: clock, seed: environment.seed, loader: loader,
            ties: ServiceTies(nil, session: session(clock, environment), onDiscard: onDiscard))
    }

    /// Lets the session perform a flight of a shared grant.
    ///
    /// Its task is never cancelled: a loaded token is saved even if all callers have left. Only the loader's own task can be
    /// cancelled.
    func share(by session: any GrantSession, urgency: Urgency) {
        guard let flight = machine.state.flight else { return }
        let membership = membershipOfFlight(flight.id)
        let run = SharedFlightRun(
            plan: plan(of: flight), service: self, generation: flight.generation, membership: membership)
        let task = Task.detached(on: storeStart, priority: urgency.priority) {
            let end = await LoadMembership.$current.withValue(membership) { await session.perform(run) }
            await self.endSharedFlight(flight, end)
        }
        begin(RunningLoad(flight: flight.id, task: task, urgency: urgency))
    }

    private func plan(of flight: Machine.Flight) -> SharedFlightPlan {
        var plan = sharedPlan
        (plan.id, plan.deadline, plan.previous) = (flight.id, flight.deadline, flight.previous)
        plan.isCheck = !flight.isLoading
        plan.hasToken = machine.state.cached != nil
        plan.isRefresh = plan.hasToken && lobby.withLock { $0.waiters.count == 0 }
        return plan
    }

    /// What a session has to know besides a flight.
    var sharedPlan: SharedFlightPlan {
        var plan = SharedFlightPlan()
        (plan.policy, plan.isRepeatable, plan.keyThumbprint) = (machine.policy, machine.isRepeatable, loader.keyThumbprint)
        let now = clock.now()
        plan.refused = machine.rejections.tokens.map(\.token).filter { machine.rejections.contains($0, at: now) }.map(\.value)
        return plan
    }

    fileprivate func load(
        replacing previous: AccessToken?, for flight: Int, _ membership: LoadMembership
    ) async -> Result<AccessToken, any Error> {
        // More callers may have joined while the record was being read.
        let urgency = max(.current, lobby.withLock { $0.urgency })
        let task = Task.detached(on: loadStart, priority: urgency.priority) { [loader, loadExecutor] in
            try await LoadMembership.$current.withValue(membership) {
                try await withTaskExecutorPreference(loadExecutor) {
                    // This process may have been suspended for so long that other processes no longer respect its mark.
                    try LoadTime.check()
                    return try await loader.loadToken(replacing: previous)
                }
            }
        }
        // The flight may have ended meanwhile.
        if var load, load.flight == flight {
            load.loader = task
            setLoad(load)
        }
        // Awaiting the task lends it the flight's priority.
        return await task.result
    }

    fileprivate func handOverDisplaced(forFlightOf generation: Int) -> Bool {
        if machine.keeper.operations.isEmpty { handOver(ties?.session?.takeDisplaced() ?? []) }
        // Asked only after the fences that come first.
        step { [session = ties?.session] machine, _ in
            if let end = session?.takeEnd() { machine.sharedSessionEnded(end) }
        }
        // An operation of the store may have ended the session while the flight waited to begin.
        return machine.session.generation == generation
    }

    /// Passes displaced grants to the program, unless the service has done so.
    func handOver(_ displaced: [DiscardedGrant]) {
        for grant in displaced { _ = step { machine, _ in machine.displaced(grant) } }
    }

    private func endSharedFlight(_ flight: Machine.Flight, _ end: SharedFlightEnd) {
        settle()
        forgetLoad(of: flight.id)
        if let token = end.discarded {
            let isSignedOut = if case .signedOut = end.outcome { true } else { flight.generation < machine.session.lastReset }
            let isReplaced = flight.generation < machine.session.generation
            handOver([DiscardedGrant(token: token, reason: isSignedOut ? .signedOut : isReplaced ? .replaced : .superseded)])
        }
        if let afterwards = end.afterwards {
            Task.detached(on: foreignExecutor) {
                await afterwards()
                // The service may be released from now on.
                await self.step { _, _ in }
            }
        }
        step { [session = ties?.session] machine, now in
            // If a fence or another flight's sign-out came after this read, the next read compares the record again.
            if flight.generation == machine.session.generation { end.learns?() }
            machine.ended(end.outcome, by: flight.id, at: now)
            // The flight may have written what an operation of the store could not.
            if !(session?.isBehind ?? true) { machine.noteUnsaved(nil, at: now) }
        }
    }
}
