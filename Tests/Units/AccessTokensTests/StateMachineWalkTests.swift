import TestBudgets
import Testing

@testable import AccessTokens

/// Guarantees 1, 2, 4–6, 8–11 and 45 on the pure machine, without concurrency: every state that can be reached is visited, every
/// event tried in it, every promise of ``World`` checked.
@Suite(.serialized) struct StateMachineWalkTests {
    @Test(.thorough, arguments: [true, false])
    func `every reachable state of a caller and a store keeps every promise`(isRepeatable: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, hasStore: true))
    }

    @Test(.thorough, arguments: [true, false])
    func `45: in every reachable state of a caller, a program that drains starts nothing and misses nothing`(
        isRepeatable: Bool
    ) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, drains: true))
    }

    @Test(.thorough, arguments: [true, false])
    func `45: the same with a store`(isRepeatable: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, hasStore: true, drains: true))
    }

    /// A second caller, or a load that may be repeated, makes the walk several times as long.
    #if DEBUG
    static let callers = isThorough ? [(2, true), (2, false)] : [(1, false)]
    #else
    static let callers = [(3, true), (3, false)]
    #endif

    @Test(arguments: callers)
    func `every reachable state of one to three callers keeps every promise`(
        callers: Int, isRepeatable: Bool
    ) async {
        await walk(from: World(callers: callers, isRepeatable: isRepeatable))
    }

    /// Yields now and then: a walk of many seconds would keep a thread of the pool from every other test.
    private func walk(from start: World) async {
        var seen: Set<[Int]> = [start.key]
        var frontier = [start]
        var visits = 0
        while let world = frontier.popLast() {
            visits += 1
            if visits.isMultiple(of: 32) { await Task.yield() }
            for event in world.events {
                var next = world
                next.perform(event)
                if let violation = next.violation {
                    Issue.record("\(violation): after \(event) in \(world.machine.state)")
                    return
                }
                if seen.insert(next.key).inserted { frontier.append(next) }
            }
        }
        #expect(seen.count > 100)
        // For the table in CONTRIBUTING.md.
        if isThorough { print("walk: \(seen.count) states; \(start.text)") }
    }
}
