import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Gives every caller in a program a valid access token, with one load however many ask.
///
/// ```swift
/// let tokens = TokenService { previous in try await fetchToken(replacing: previous) }
/// let token = try await tokens.retrieveToken()
/// ```
///
/// Create one for each token that a program needs and share it, or let `TokenServices`, of the module `AccessTokensKeys`, make
/// one for each audience, scope or user. Every method may be called from anywhere at any time. A pure state machine makes the
/// decisions; the actor performs their effects. The first event to reach the actor wins. Callers find a token, join a running
/// load and leave it under a lock, without entering the actor.
public actor TokenService {
    typealias Machine = StateMachine

    /// The executor of time limits and visits to the actor; `nil`: the default pool, where an explorer drives everything.
    package nonisolated let executor: (any TaskExecutor)?
    /// The default actor that this service runs like; `nil`: its executor is the queue that services share.
    nonisolated let isolation: DefaultIsolation?
    /// Where the loader and the store run; `nil`: on the default pool.
    nonisolated let loadExecutor: (any TaskExecutor)?
    /// Where a load begins, on its way to the loader; `nil`: on the default pool.
    nonisolated let loadStart: (any TaskExecutor)?
    nonisolated let clock: ServiceClock
    /// Serves callers without entering the actor: has the snapshot that they see and the queue in which they wait.
    nonisolated let lobby = Lock(Lobby<Waiter>())
    nonisolated let loader: any TokenLoader
    nonisolated let wallClock: @Sendable () -> Date
    /// Its ties to other objects; most services have none, and `nil` here.
    let ties: ServiceTies?
    /// Wakes the service when a time limit has passed.
    nonisolated let alarms = Alarms()
    private(set) var machine: Machine
    /// The load of the current flight.
    var load: RunningLoad?
    /// Loads that a fence cut off and that go on beside later ones.
    var fencedLoads: [RunningLoad] = []
    /// The running operation of the store.
    var storing: Task<Void, any Error>?
    /// The membership of the current flight's tasks.
    var flightMembership: LoadMembership?
    /// The membership of a store operation's tasks, if the current flight doesn't wait for it.
    var operationMembership: LoadMembership?
    /// When the service may be released, as last reported.
    private var idleFrom: Duration? = .zero
    /// What the store has yet to save, as last reported.
    private var unsaved: FailedWrite?
    /// The fences that wait for the store, and the tokens that the service itself gave up for them.
    var fences: [(number: Int, end: SingleResult<SessionChange>, discarded: [AccessToken])] = []
    /// The calls of `drain` that wait until no load and no operation of the store is under way.
    var drains: [(end: SingleResult<Void>, next: Duration)] = []
    /// The calls of `signInState` that wait for the store.
    var questions: [SingleResult<SignInState>] = []

    /// Creates a service that has no token yet; the first caller starts a load.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Keeps the token between runs of the program; `nil` to keep it nowhere. Asked at the first miss, and
    ///     before a load spends a refresh token.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token that the service gives up although its grant may still be good at the server, so
    ///     that you can revoke it (RFC 7009). A sign-out also passes the stored token, and a token that a cut-off load brings
    ///     later. Called outside the service, in its own task; nothing waits for it. If the server doesn't rotate, several
    ///     tokens have one refresh token, which may be passed twice: revoking it again must be harmless.
    ///   - loader: Gets new tokens.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil,
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        loader: some TokenLoader
    ) {
        let isAlone = store == nil && onDiscard == nil
        self.init(
            policy: policy, environment: environment, clock: ServiceClock.opened(environment.clock), seed: environment.seed,
            loader: loader, ties: isAlone ? nil : ServiceTies(store, onDiscard: onDiscard))
    }

    /// The same for a service that is one of many, or that shares its grant.
    package init(
        policy: RefreshPolicy, environment: borrowing Environment, clock: ServiceClock, seed: UInt64,
        loader: any TokenLoader, ties: ServiceTies?, isDrained: Bool = false
    ) {
        executor = environment.limitExecutor
        isolation = executor === ServiceQueue.shared ? nil : DefaultIsolation()
        loadExecutor = environment.loadExecutor
        loadStart = loadExecutor != nil || type(of: loader) == CallbackLoad.self ? executor : environment.executor
        self.clock = clock
        self.loader = loader
        self.ties = ties
        wallClock = environment.wallClock
        machine = Machine(
            policy: policy, isRepeatable: loader.isRepeatable, keptIn: ties?.place ?? .memory, seed: seed)
        if isDrained { machine.drain(at: .zero) }
    }

    /// The executor on which the actor's calls run; it needs no thread that a program can hold, unless the environment has another.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        guard let isolation else { return unsafe ServiceQueue.actors.asUnownedSerialExecutor() }
        return unsafe isolation.unownedExecutor
    }

    /// Where tasks run that call the program's own code; `nil`: on the default pool.
    nonisolated var foreignExecutor: (any TaskExecutor)? { executor === ServiceQueue.shared ? nil : executor }

    /// Where the work of a store begins: on the pool unless the store has an executor, since the service's own queue is no place
    /// for it.
    nonisolated var storeStart: (any TaskExecutor)? { loadExecutor == nil ? foreignExecutor : executor }

    /// Takes an event and performs its effects; the only way to change the state.
    ///
    /// What the program did since the last event comes first: it has taken effect for callers already. Only the calls of the two
    /// closures are generic, so a program has one copy of the rest.
    ///
    /// - Parameter admission: Gives the caller a place, if it must wait, before others can join behind it.
    func step<Decision: Sendable, Outcome: Sendable>(
        _ event: (inout Machine, Duration) -> Decision, admission: (Decision, inout Lobby<Waiter>) -> Outcome
    ) -> Outcome {
        let (joined, isAwaited, hasListeners, notices) = lobby.withLock { $0.close() }
        // Read the clock after closing, so that no notice is from a later time.
        let now = clock.now()
        let isObserved = hasListeners || ties?.tether?.use.wasUsed ?? false
        let fenceUrgency = notices.isEmpty ? nil : expect(notices, at: now)
        let decision = machine.take(
            event, after: notices, at: now, joined: joined, isAwaited: isAwaited, isObserved: isObserved)
        let ending = machine.conclude(tellsIdle: ties?.tether != nil)
        let answer: Lobby<Waiter>.Answer? = ending.answer?.mapError { dated($0, at: now) }
        // Publish the snapshot first: a resumed caller that asks again must see this event's decision.
        let (answered, late, urgency, outcome) = lobby.withLock { lobby in
            let answered = lobby.open(ending.snapshot, until: ending.tokenEnd, answering: answer)
            let outcome = admission(decision, &lobby)
            return (answered, lobby.expire(at: now), lobby.urgency, outcome)
        }
        performEffects(
            of: ending, answering: answered, with: answer, late: late, urgency: max(urgency, fenceUrgency ?? urgency), at: now)
        return outcome
    }

    func step<Decision: Sendable>(_ event: (inout Machine, Duration) -> Decision) -> Decision {
        step(event) { decision, _ in decision }
    }

    /// Lets the machine learn what the program did, if it did anything since the last event.
    package func settle() {
        if lobby.withLock({ !$0.notices.isEmpty }) { step { _, _ in } }
    }

    private func performEffects(
        of ending: borrowing Machine.Ending, answering answered: borrowing WaiterQueue<Waiter>,
        with answer: Lobby<Waiter>.Answer?, late: [Waiter], urgency: Urgency, at now: Duration
    ) {
        endMemberships(but: ending.awaitedFlight)
        // Perform the effects first: they may end another load.
        for effect in ending.effects { performEffect(effect, urgency: urgency, at: now) }
        // A caller may have become urgent on its way in.
        if let flight = ending.start { start(flight, urgency: max(.current, urgency)) }
        if let answer { answered.forEach { $0.resume(with: answer) } }
        for waiter in late { waiter.resume(with: .failure(TokenServiceError(.deadlineExceeded))) }
        if ending.snapshot.nextDeadline < .forever {
            wake(at: ending.snapshot.nextDeadline)
        } else if ending.snapshot.joinableUntil == .zero {
            // No caller waits, and none can begin to wait with a limit while the alarm is cancelled.
            alarms.wakeNoMore()
        }
        if let ties { report(idleFrom: ending.idleFrom, at: now, to: ties) }
        if !drains.isEmpty { wakeDrains(at: now) }
        if !questions.isEmpty { answerQuestions() }
    }

    private func report(idleFrom moment: Duration?, at now: Duration, to ties: ServiceTies) {
        guard ties.tether != nil else { return }
        let unsaved = machine.keeper.unsaved
        if (unsaved == nil) != (self.unsaved == nil) || unsaved?.nextAttempt != self.unsaved?.nextAttempt {
            self.unsaved = unsaved
            ties.tether?.send(.isBehind(unsaved))
        }
        var moment = moment
        // A shared grant's session may still need the service when the machine doesn't.
        if let session = ties.session, let machineIdle = moment { moment = session.idleFrom.map { max($0, machineIdle) } }
        guard moment != idleFrom else { return }
        idleFrom = moment
        ties.tether?.send(.changed(idleFrom: moment, at: now))
    }

    private func announce(_ event: TokenEvent) {
        lobby.withLock { $0.hub }?.send(event)
        ties?.tether?.send(.announce(event))
    }

    private func performEffect(_ effect: Machine.Effect, urgency: Urgency, at now: Duration) {
        switch effect {
        case .cancel(let flight): cancel(flight)
        case .perform(let operation): performOperation(operation, urgency: max(.current, urgency), at: now)
        case .saveLentGrant: ties?.lender?.saveAgain()
        case .gaveUp(let token, let fence): note(token, givenUpBy: fence)
        case .endFences(let numbers, let givenUp, let error): endFences(numbers, givenUp: givenUp, error: error)
        case .discard(let grant): discard(grant)
        case .announce(let event): announce(event.mapError { dated($0, at: now) })
        }
    }

    /// Adds the error's moments on the wall clock.
    func dated(_ error: TokenServiceError, at now: Duration) -> TokenServiceError {
        error.hasMoment ? error.dated(wallTime, at: now) : error
    }
}

/// The description shows neither the token nor the loader or the store, which belong to the program and may hold secrets.
///
/// This also makes a dump safe at any time: a mirror would read the actor's state from outside the actor.
extension TokenService: Redacted {
    package nonisolated var text: String { "TokenService" }
}
