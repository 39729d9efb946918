@testable import AccessTokens

/// The state machine with everything around it: callers, loads, time.
///
/// It takes one event at a time and checks every guarantee after it.
///
/// Time moves in steps of 100 s, longer than any pause after a failed load, so that rounding a deadline up to the next step loses
/// nothing: two worlds with the same ``key`` behave alike from then on.
struct World: Sendable {
    typealias Machine = TokenService.StateMachine
    typealias Lobby = TokenService.Lobby<Int>

    enum Event: Hashable, Sendable {
        case call(Int), join(Int), arrive(Int), leave(Int)
        /// A caller asks for a longer life than any token has, and one insists on a load.
        case arriveDemanding(Int), arriveInsisting(Int)
        case succeed(Int), succeedWithRejected(Int), succeedExpired(Int), succeedBarely(Int)
        case fail(Int), failWithRetryAfter(Int), failForGood(Int), failSalvaging(Int)
        case refreshAhead, invalidateCurrent, invalidateOlder, replace, replaceExpired, reset, retryNow
        case tick
        case storeFinds, storeFindsOwn, storeEnds, storeFails, lostEnds, lostFails
        case drain, resume, ask
        /// An act of the program between two events, and one while the machine decides on the next event.
        case act(Act), actMeanwhile(Act)
    }

    /// What the program does wherever it stands; the machine learns of it with its next event.
    enum Act: Int8, Hashable, CaseIterable, Sendable {
        case signsIn, signsInWithGrant, signsOut, refuses
    }

    enum Caller: Hashable, Sendable {
        case idle
        case called(seen: Int)
        case waiting(Lobby.Place, seen: Int)
    }

    struct Load: Sendable {
        let id: Int, number: Int, start: Duration, limit: Duration, generation: Int, hasGrant: Bool
    }

    static let step = Duration.seconds(100)
    /// The leeway, from 396 s on, includes a step.
    static let lifetime = Duration.seconds(440)

    /// Fewer than in a service, since each step for which a given-up load may count adds states.
    static let timeoutsUntilForgotten = 2

    var machine: Machine
    var lobby = Lobby()
    var now = Duration.zero
    var callers: [Caller]
    var loads: [Load] = []
    /// The store's current work.
    var running: GrantKeeper.Operation?
    /// The last save or removal that was considered lost, and may still end.
    var lost: GrantKeeper.Operation?
    /// The generation that another service's sign-out began.
    var foundEmpty: Int?
    /// Fences whose callers wait for the store.
    var fences: Set<Int> = []
    /// The grants that the last event gave up.
    var discarded: [String] = []
    /// The grants that the last event must have given up.
    var givenUp: [String] = []
    var tokens = 0
    /// Each token's generation, and when it really expires.
    var born: [String: (generation: Int, end: Duration, hardEnd: Duration)] = [:]
    /// How many loads have begun.
    var begun = 0
    /// The token refused last, until it has certainly expired or a later load brings it again.
    var refused: (token: AccessToken, until: Duration, begun: Int)?
    /// The token that may be handed out inside its leeway if a load fails, and whether one has failed since it arrived.
    var held: AccessToken?
    var hasFailed = false
    /// The tokens that must no longer be handed out: they or their grants were refused, or there was a fence.
    var barred: Set<String> = []
    /// How long a refusal counts: until the token has certainly expired.
    var refusals: [String: Duration] = [:]
    /// The load that is under way according to the events.
    var told: Int?
    var violation: String?
    /// The events so far.
    var path: [Event] = []
    /// What the program does while the machine decides on the next event.
    var meanwhile: Act?
    /// Whether the program may drain the service at any time, and resume it.
    private let drains: Bool
    /// Whether sign-ins, sign-outs and refusals come from outside the actor.
    private let actsOutside: Bool
    /// Whether callers ask for more than a valid token.
    let demands: Bool
    /// Whether the current event's caller insists on a load.
    var insists = false
    /// How many acts of the program the machine has yet to learn of, at most; with a store one, or the states fill the memory.
    private var pendingActs: Int { machine.keeper.hasStore ? 1 : 2 }

    init(
        callers: Int, isRepeatable: Bool, hasStore: Bool = false, drains: Bool = false, actsOutside: Bool = false,
        demands: Bool = false
    ) {
        self.drains = drains
        self.actsOutside = actsOutside
        self.demands = demands
        let policy = RefreshPolicy(loadTimeout: .seconds(200))
        machine = Machine(
            policy: policy, isRepeatable: isRepeatable, keptIn: hasStore ? .store : .memory,
            timeoutsUntilForgotten: Self.timeoutsUntilForgotten,
            seed: 1)
        self.callers = Array(repeating: .idle, count: callers)
    }

    mutating func newToken(lifetime: Duration, from start: Duration) -> AccessToken {
        tokens += 1
        let token = AccessToken("token-\(tokens)", lifetime: lifetime, refreshToken: "grant-\(tokens)")
        born[token.value] = (machine.session.generation, start + lifetime, Self.hardEnd(of: lifetime, from: start))
        return token
    }

    /// When a token has only its leeway left: a tenth of its lifetime, 60 s at most.
    static func hardEnd(of lifetime: Duration, from start: Duration) -> Duration {
        start + lifetime - min(.seconds(60), lifetime / 10)
    }

    mutating func check(_ condition: Bool, _ promise: @autoclosure () -> String) {
        if !condition, violation == nil { violation = promise() }
    }

    /// A readable description of the world.
    var text: String {
        let more =
            (machine.keeper.hasStore ? ", a store" : "") + (drains ? ", drained and resumed" : "")
            + (actsOutside ? ", acts outside the actor" : "") + (demands ? ", demands" : "")
        return "\(callers.count) callers, \(machine.isRepeatable ? "repeatable" : "unrepeatable") loads\(more)"
    }

    /// The possible events that the walk tries.
    var events: [Event] { possibleEvents.filter(tries) }

    /// Whether the walk tries an event.
    ///
    /// Without a store it tries all of them. A store makes many times as many states, so there the walk leaves out a
    /// `Retry-After`, a load that brings a refused or an almost expired token, and the refusal of an older token. If the
    /// program drains, it also leaves out the refusal of the current token, a grant without a token, salvaged grants and
    /// `retryNow`.
    ///
    /// If sign-ins, sign-outs and refusals come from outside, it leaves out those inside and, of the ways in which a load can
    /// end, all but three.
    private func tries(_ event: Event) -> Bool {
        if actsOutside {
            return switch event {
            case .reset, .replace, .replaceExpired, .invalidateCurrent, .invalidateOlder, .retryNow, .refreshAhead: false
            case .failWithRetryAfter, .failForGood, .failSalvaging, .succeedWithRejected, .succeedExpired, .succeedBarely: false
            default: true
            }
        }
        guard machine.keeper.hasStore else { return true }
        return switch event {
        case .failWithRetryAfter, .succeedWithRejected, .invalidateOlder, .succeedBarely: false
        case .replaceExpired, .failSalvaging, .retryNow, .invalidateCurrent: !drains
        default: true
        }
    }

    /// Equivalent callers and loads are represented by one of them.
    private var possibleEvents: [Event] {
        var events: [Event] = [.tick, .refreshAhead, .reset, .replace, .replaceExpired, .retryNow, .ask]
        if machine.state.cached != nil || machine.reserve != nil { events.append(.invalidateCurrent) }
        if refused != nil { events.append(.invalidateOlder) }
        if drains { events.append(machine.isDrained ? .resume : .drain) }
        if actsOutside, lobby.notices.count < pendingActs {
            for act in Act.allCases where act != .refuses || refusable != nil {
                events.append(.act(act))
                if meanwhile == nil { events.append(.actMeanwhile(act)) }
            }
        }
        if let idle = callers.firstIndex(of: .idle) { events.append(.call(idle)) }
        for (index, caller) in callers.enumerated() {
            switch caller {
            case .idle: break
            case .called:
                events += [.join(index), .arrive(index)]
                if demands { events += [.arriveDemanding(index), .arriveInsisting(index)] }
            case .waiting: events.append(.leave(index))
            }
        }
        let overtaken = machine.abandoned.filter { flight in
            flight.publications != machine.publications && loads.contains { $0.id == flight.id }
        }
        let counting = overtaken.first { counts($0) }, forgotten = overtaken.first { !counts($0) }
        for id in [counting?.id, forgotten?.id, machine.fenced.first?.id].compactMap(\.self) {
            events += [.succeed(id), .failForGood(id), .failSalvaging(id)]
        }
        let others = overtaken.map(\.id) + machine.fenced.map(\.id)
        for load in loads where !others.contains(load.id) {
            events += [.succeed(load.id), .fail(load.id), .failForGood(load.id), .failWithRetryAfter(load.id)]
            events += [.succeedExpired(load.id), .failSalvaging(load.id)]
            if load.start < now { events.append(.succeedBarely(load.id)) }
            if refused != nil { events.append(.succeedWithRejected(load.id)) }
        }
        if let running {
            events += [.storeEnds, .storeFails]
            if case .load = running.kind { events.append(.storeFinds) } else if running.handsOver { events.append(.storeFinds) }
            if !running.isWrite, machine.keeper.grant.token != nil { events.append(.storeFindsOwn) }
        }
        if lost != nil { events += [.lostEnds, .lostFails] }
        return events
    }

    /// Whether a load that was given up still blocks others.
    func counts(_ flight: Machine.Flight) -> Bool { now < machine.endOfPatience(with: flight) }
}
