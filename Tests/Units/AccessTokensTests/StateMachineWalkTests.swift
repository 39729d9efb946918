import TestBudgets
import Testing

@testable import AccessTokens

/// Guarantees 1, 2, 4–6, 8–11 and 45 on the pure machine, without concurrency: visits every reachable state, tries every event in
/// it, and checks every promise of ``World``.
///
/// With a store some events are left out: ``World/events`` says which. The walks take minutes, so a run that isn't thorough
/// visits only the states nearest to the start.
@Suite(.serialized) struct StateMachineWalkTests {
    @Test(arguments: [false, true])
    func `the 1,500 states of a caller nearest to the start keep every promise`(hasStore: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: false, hasStore: hasStore), visits: 1_500)
    }

    @Test(.thorough, arguments: [true, false])
    func `every reachable state of a caller and a store keeps every promise`(isRepeatable: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, hasStore: true))
    }

    @Test(arguments: [true, false])
    func `56: the 3,000 states nearest to the start keep every promise if a caller has demands`(isRepeatable: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, demands: true), visits: 3_000)
    }

    @Test(.thorough, arguments: [(1, true), (1, false), (2, true), (2, false)])
    func `56: the same in every reachable state of one or two callers`(callers: Int, isRepeatable: Bool) async {
        await walk(from: World(callers: callers, isRepeatable: isRepeatable, demands: true))
    }

    @Test(.thorough, arguments: [true, false])
    func `45: in every reachable state of one caller, a draining program starts no load and misses nothing`(
        isRepeatable: Bool
    ) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, drains: true))
    }

    @Test(.thorough, arguments: [true, false])
    func `45: in every reachable state of a caller and a store, a draining program starts no load and misses nothing`(
        isRepeatable: Bool
    ) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, hasStore: true, drains: true))
    }

    @Test(arguments: [1, 2])
    func `52: the 1,500 states nearest to the start keep every promise if the program acts outside the actor`(
        callers: Int
    ) async {
        await walk(from: World(callers: callers, isRepeatable: true, actsOutside: true), visits: 1_500)
    }

    @Test(.thorough, arguments: [true, false])
    func `52: every reachable state keeps every promise if the program acts while the machine decides`(isRepeatable: Bool) async {
        await walk(from: World(callers: 2, isRepeatable: isRepeatable, actsOutside: true))
    }

    @Test(.thorough)
    func `52: every reachable state with a store keeps every promise if the program acts while the machine decides`() async {
        await walk(from: World(callers: 1, isRepeatable: false, hasStore: true, actsOutside: true))
    }

    /// A third caller makes the walk take several times as long.
    #if DEBUG
    static let callers = 2
    #else
    static let callers = 3
    #endif

    @Test(.thorough, arguments: [true, false])
    func `every reachable state of two or three callers keeps every promise`(isRepeatable: Bool) async {
        await walk(from: World(callers: Self.callers, isRepeatable: isRepeatable))
    }

    /// What a walk of a release build has found.
    @Test func `50: no refresh ahead begins if a lost save ended during the read before it, so that the last one is repeated`() {
        var world = World(callers: 1, isRepeatable: false, hasStore: true)
        let path: [World.Event] = [
            .replaceExpired, .replace, .tick, .tick, .tick, .storeEnds, .refreshAhead, .lostEnds, .storeFails, .storeEnds,
            .refreshAhead, .storeFails,
        ]
        for event in path { world.perform(event) }
        #expect(world.violation == nil)
        #expect(world.loads.count == 1)
    }

    @Test func `57: another service's sign-out isn't undone by a save that waits behind the read that finds it`() {
        var world = World(callers: 1, isRepeatable: false, hasStore: true)
        let path: [World.Event] = [.replaceExpired, .replace, .tick, .tick, .tick, .storeEnds, .refreshAhead, .lostEnds]
        for event in path { world.perform(event) }
        #expect(world.machine.keeper.operations.count == 2)
        world.perform(.storeEnds)
        #expect(world.violation == nil && world.machine.keeper.operations.isEmpty)
    }

    private func walk(from start: World, visits: Int = .max) async {
        var walk = Walk(from: start)
        while walk.visits < visits, let world = await walk.next() {
            for event in world.events {
                var next = world
                next.perform(event)
                if let violation = next.violation {
                    Issue.record("\(violation): after \(next.path), in \(world.machine.state)")
                    return
                }
                walk.reach(next)
            }
        }
        #expect(walk.states > 100)
        // For the table in CONTRIBUTING.md.
        if visits == .max { print("walk: \(walk.states) states; \(start.text)") }
    }
}
