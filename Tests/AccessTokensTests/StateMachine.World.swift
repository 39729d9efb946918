@testable import AccessTokens

/// The state machine with everything around it: callers, loads, time.
///
/// It takes an event at a time and checks every promise after it.
///
/// Time moves in steps of 100 s, longer than any pause after a failed load, so that rounding a deadline up to the next step
/// loses nothing: two worlds with one ``key`` behave alike for ever.
struct World: Sendable {
    typealias Machine = TokenService.StateMachine
    typealias Lobby = TokenService.Lobby<Int>

    enum Event: Hashable, Sendable {
        case call(Int), join(Int), arrive(Int), leave(Int)
        case succeed(Int), succeedWithRejected(Int), succeedExpired(Int), succeedBarely(Int)
        case fail(Int), failWithRetryAfter(Int), failForGood(Int)
        case refreshAhead, invalidateCurrent, invalidateOlder, replace, replaceExpired, reset, retryNow
        case tick
        case findStored(Int), findNothing(Int), failToRestore(Int), endSave(Int), failToSave(Int)
    }

    enum Caller: Hashable, Sendable {
        case idle
        case called(seen: Int)
        case waiting(Lobby.Place)
    }

    struct Load: Sendable {
        let id: Int, start: Duration, generation: Int
    }

    static let step = Duration.seconds(100)
    static let lifetime = Duration.seconds(400)

    var machine: Machine
    var lobby = Lobby()
    var now = Duration.zero
    var callers: [Caller]
    var loads: [Load] = []
    /// Flights that wait for the store's answer, and for the end of their save.
    var restores: [Int] = []
    var saves: [Int] = []
    /// The token whose save ended last, well or badly: with a store no other may be handed out.
    var settled: String?
    var tokens = 0
    /// Which generation each token belongs to, and when it really ends.
    var born: [String: (generation: Int, end: Duration, hardEnd: Duration)] = [:]
    /// The token refused last, until it has certainly expired.
    var refused: (token: AccessToken, until: Duration)?
    var violation: String?

    init(callers: Int, isRepeatable: Bool, hasStore: Bool = false) {
        let policy = RefreshPolicy(loadTimeout: .seconds(200))
        machine = Machine(policy: policy, isRepeatable: isRepeatable, hasStore: hasStore, seed: 1)
        self.callers = Array(repeating: .idle, count: callers)
    }

    mutating func newToken(lifetime: Duration, from start: Duration) -> AccessToken {
        tokens += 1
        let token = AccessToken("token-\(tokens)", lifetime: lifetime)
        born[token.value] = (machine.generation, start + lifetime, start + lifetime - lifetime / 10)
        return token
    }

    mutating func check(_ condition: Bool, _ promise: @autoclosure () -> String) {
        if !condition, violation == nil { violation = promise() }
    }

    /// Everything that can happen now; callers and loads that are alike are taken once.
    var events: [Event] {
        var events: [Event] = [.tick, .refreshAhead, .reset, .replace, .replaceExpired, .retryNow]
        if machine.state.servable != nil { events.append(.invalidateCurrent) }
        if refused != nil { events.append(.invalidateOlder) }
        if let idle = callers.firstIndex(of: .idle) { events.append(.call(idle)) }
        for (index, caller) in callers.enumerated() {
            switch caller {
            case .idle: break
            case .called: events += [.join(index), .arrive(index)]
            case .waiting: events.append(.leave(index))
            }
        }
        let overtaken = machine.abandoned.filter { flight in
            flight.publications != machine.publications && loads.contains { $0.id == flight.id }
        }.map(\.id)
        if let id = overtaken.first { events += [.succeed(id), .failForGood(id)] }
        for load in loads where !overtaken.contains(load.id) {
            events += [.succeed(load.id), .fail(load.id), .failForGood(load.id), .failWithRetryAfter(load.id)]
            events.append(.succeedExpired(load.id))
            if load.start < now { events.append(.succeedBarely(load.id)) }
            if refused != nil { events.append(.succeedWithRejected(load.id)) }
        }
        for id in restores { events += [.findStored(id), .findNothing(id), .failToRestore(id)] }
        for id in saves { events += [.endSave(id), .failToSave(id)] }
        return events
    }
}
