import TestBudgets
import Testing

@testable import AccessTokens

/// Guarantees 1, 2, 4–6, 8–11 on the pure machine, without concurrency: every state that can be reached is visited, every
/// event tried in it, every promise of ``World`` checked.
@Suite(.serialized) struct StateMachineWalkTests {
    #if DEBUG
    static let callers = 2
    #else
    static let callers = 3
    #endif

    @Test(.thorough, arguments: [true, false])
    func `every reachable state of a caller and a store keeps every promise`(isRepeatable: Bool) async {
        await walk(from: World(callers: 1, isRepeatable: isRepeatable, hasStore: true))
    }

    @Test(arguments: [true, false])
    func `every reachable state of two callers, in release builds three, keeps every promise`(isRepeatable: Bool) async {
        await walk(from: World(callers: Self.callers, isRepeatable: isRepeatable))
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
    }
}
