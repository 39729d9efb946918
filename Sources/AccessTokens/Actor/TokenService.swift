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
/// Create one for each token that a program needs (each audience, scope or user) and share it: every method may be called
/// from anywhere at any time. What is decided lives in a pure state machine; the actor performs its effects. The first
/// event to reach the actor wins. Callers find a token, join a running load and leave it under a lock, without the actor.
public actor TokenService {
    typealias Machine = StateMachine

    /// Work whose tasks may ask a service for a token.
    enum Work: Hashable {
        case flight(Int)
        case operation(Int)
    }

    /// A load that has not ended.
    struct RunningLoad {
        let task: Task<Void, Never>
        var priority: TaskPriority
    }

    /// Where time limits and visits to the actor run; `nil`: on the default pool.
    package nonisolated let executor: (any TaskExecutor)?
    /// Where the loader and the store run.
    let loadExecutor: (any TaskExecutor)?
    nonisolated let clock: ServiceClock
    /// What callers see and where they wait, without coming in.
    nonisolated let lobby = Lock(Lobby<Waiter>())
    nonisolated let hub = EventHub()
    let loader: any TokenLoader
    let store: (any TokenStore)?
    let wallClock: @Sendable () -> Date
    let onDiscard: (@Sendable (DiscardedGrant) async -> Void)?
    /// Wake the service when a time limit has passed.
    nonisolated let alarms: Alarms
    private(set) var machine: Machine
    var loads: [Int: RunningLoad] = [:]
    /// What the tasks of the current flight carry, and those of a store's operation that no flight waits for.
    var memberships: [Work: LoadMembership] = [:]
    /// The callers of fences that wait for the store.
    var fences: [Int: SingleResult<SessionChange>] = [:]

    /// Creates a service that has no token yet; the first caller starts a load.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Where the token outlives the program; `nil`: nowhere. Asked at the first miss.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token that the service gives up although its grant may still be good at the server, so
    ///     that you can revoke it (RFC 7009): at a sign-out, what it finds in the store then, and what a load that was cut off
    ///     brings later. Called outside the service, in a task of its own; nothing waits for it.
    ///   - loader: What gets a new token.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil,
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        loader: some TokenLoader
    ) {
        executor = environment.ownExecutor
        loadExecutor = environment.loadExecutor
        clock = ServiceClock(environment.clock)
        alarms = Alarms(clock: clock, executor: executor)
        self.loader = loader
        self.store = store
        self.onDiscard = onDiscard
        wallClock = environment.wallClock
        machine = Machine(policy: policy, isRepeatable: loader.isRepeatable, hasStore: store != nil, seed: environment.seed)
    }

    /// The one door to the state: an event goes in, its effects are performed.
    ///
    /// - Parameter admission: Gives the caller a place, if it is to wait, before others can join behind it.
    func step<Decision: Sendable, Outcome: Sendable>(
        _ event: (inout Machine, Duration) -> Decision, admission: (Decision, inout Lobby<Waiter>) -> Outcome
    ) -> Outcome {
        let now = clock.now()
        let (joined, isAwaited) = lobby.withLock { $0.close() }
        machine.callersJoined(joined, isAwaited: isAwaited)
        let decision = event(&machine, now)
        let effects = machine.takeEffects()
        var answer: Lobby<Waiter>.Answer?
        for case .answer(let result) in effects { answer = result.mapError { dated($0, at: now) } }
        // The snapshot first: a caller that is resumed below, and asks again, must see what this event decided.
        let (answered, outcome, late) = lobby.withLock { [answer, snapshot = machine.snapshot] lobby in
            (lobby.open(snapshot, answering: answer), admission(decision, &lobby), lobby.expire(at: now))
        }
        endMemberships()
        for effect in effects {
            // At most one answer: afterwards no caller waits.
            if case .answer = effect, let answer { answered.forEach { $0.resume(with: answer) } }
            perform(effect, at: now)
        }
        for waiter in late { waiter.resume(with: .failure(TokenServiceError(.deadlineExceeded))) }
        if let deadline = machine.nextDeadline { wake(at: deadline) } else { alarms.wakeNoMore() }
        return outcome
    }

    private func perform(_ effect: Machine.Effect, at now: Duration) {
        switch effect {
        case .start(let flight): start(flight)
        case .cancel(let flight): cancel(flight)
        case .perform(let operation): perform(operation, at: now)
        case .endFences(let numbers, let found, let error): end(numbers, found: found, error: error)
        case .discard(let grant): discard(grant)
        case .announce(let event): hub.send(event.mapError { dated($0, at: now) })
        case .answer: break
        }
    }

    func step<Decision: Sendable>(_ event: (inout Machine, Duration) -> Decision) -> Decision {
        step(event) { decision, _ in decision }
    }

    /// Tells the moment of the next attempt on the wall clock.
    func dated(_ error: TokenServiceError, at now: Duration) -> TokenServiceError {
        guard let offset = error.retryOffset else { return error }
        let wait = max(offset - now, .zero) / .seconds(1)
        var error = error
        error.retryAt = wallTime?.addingTimeInterval(wait)
        return error
    }
}

/// What a service says of itself: neither its token nor its loader and store, which are the program's own and may hold secrets.
///
/// It is also what makes a dump safe at any moment: a mirror reads an actor's state from outside the actor.
extension TokenService: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name.
    public nonisolated var description: String { "TokenService" }

    /// The same as ``description``: a debugger's log is a log.
    public nonisolated var debugDescription: String { description }

    /// A mirror of the description alone.
    public nonisolated var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .class, ancestorRepresentation: .suppressed)
    }
}
