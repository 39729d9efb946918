@testable import AccessTokens

/// Every step that the state machine can take, found by walking it; the source of the pictures in `Docs`.
struct StateDiagram {
    /// The cases of the machine's one enum.
    enum Place: String, CaseIterable, Comparable {
        case empty, loading, fresh, refreshing, stalled

        static func < (left: Place, right: Place) -> Bool { left.rawValue < right.rawValue }
    }

    /// An event in a place, and the resulting place.
    struct Step: Hashable {
        let from: Place
        let event: Happening
        let to: Place
    }

    /// The kinds of services in which each step happens.
    private(set) var steps: [Step: Set<Kind>] = [:]

    /// The states of one caller, for every kind of service: walked once, for all tests.
    static var walked: StateDiagram {
        get async { await walk.value }
    }

    private static let walk = Task {
        var diagram = StateDiagram()
        for kind in Kind.allCases { await diagram.walk(kind) }
        return diagram
    }

    /// In every kind of service the last new step is found within 40,000 states.
    ///
    /// Walking on to the end, which takes minutes, found no other.
    private static let mostVisits = 80_000

    private mutating func walk(_ kind: Kind) async {
        var walk = Walk(from: World(callers: 1, isRepeatable: kind.isRepeatable, hasStore: kind.hasStore))
        while walk.visits < Self.mostVisits, let world = await walk.next() {
            for event in world.events where kind.tries(event) {
                var next = world
                next.perform(event)
                walk.reach(next)
                if event == .tick {
                    addTime(from: world, kind)
                } else if let happening = world.happening(event) {
                    add(Step(from: world.place, event: happening, to: next.place), kind)
                }
            }
            // The world's limit for loads is longer than its soft windows; the default one is shorter.
            if case .refreshing(_, let flight) = world.machine.state, flight.isLoading {
                var next = world
                next.machine.timeOutFlight(at: flight.deadline)
                _ = next.machine.conclude()
                add(Step(from: .refreshing, event: .timeOut, to: next.place), kind)
                walk.reach(next)
            }
        }
    }

    /// Time alone can have two effects at once; the machine applies them one after the other, and so does the picture.
    private mutating func addTime(from world: World, _ kind: Kind) {
        var world = world
        let before = world.place
        world.now += World.step
        let expiry = world.machine.state.cached?.expiry
        world.machine.expireToken(at: world.now)
        let between = world.place
        if let expiry, expiry <= world.now { add(Step(from: before, event: .expiry, to: between), kind) }
        let isLoadLate = world.machine.state.loadDeadline.map { $0 <= world.now } ?? false
        world.machine.timeOutFlight(at: world.now)
        let afterwards = world.place
        if isLoadLate { add(Step(from: between, event: .timeOut, to: afterwards), kind) }
        world.machine.forgetStalledFlight(at: world.now)
        let remaining = world.place
        if remaining != afterwards { add(Step(from: afterwards, event: .forgotten, to: remaining), kind) }
        let isAwaited = world.machine.keeper.operations.contains { !$0.isLate && $0.flight != nil }
        world.machine.timeOutStore(at: world.now)
        if isAwaited { add(Step(from: remaining, event: .storeTimeOut, to: world.place), kind) }
    }

    mutating func add(_ step: Step, _ kind: Kind) {
        steps[step, default: []].insert(kind)
    }

    /// Returns where an event can lead from a place, with a mark if only for some kinds of services.
    func targets(from place: Place, on event: Happening) -> [(place: Place, mark: String)] {
        let possible = steps.filter { $0.key.from == place && $0.key.event == event }
        let kinds = possible.values.reduce(into: Set<Kind>()) { $0.formUnion($1) }
        return possible.sorted { $0.key.to < $1.key.to }.map { ($0.key.to, Kind.mark(of: $0.value, among: kinds)) }
    }
}

extension World {
    /// Which case the machine is in.
    var place: StateDiagram.Place {
        switch machine.state {
        case .empty: .empty
        case .loading: .loading
        case .fresh: .fresh
        case .refreshing: .refreshing
        case .stalled: .stalled
        }
    }
}
