import TestBudgets
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Every state of a fleet")
struct FleetWalkTests {
    struct Walk {
        var states = 0
        var fates: [FleetWorld.Fate: Int] = [:]
        var stuck = 0

        /// Visits every state that can be reached.
        ///
        /// It remembers each by its hash: with a million states, two have the same hash in one of 37 million runs.
        init(from start: FleetWorld) async {
            var seen: Set = [start.hashValue], stack = [start]
            while let world = stack.popLast() {
                states += 1
                // Let other tests run: their loads have time limits, and the pool may have only two threads.
                if states.isMultiple(of: 32) { await Task.yield() }
                if let fate = world.fate { fates[fate, default: 0] += 1 }
                if case .violated? = world.fate { continue }
                let next = world.successors()
                if next.isEmpty, world.fate == nil { stuck += 1 }
                for world in next where seen.insert(world.hashValue).inserted { stack.append(world) }
            }
        }

        /// Prints the number of states, for `Docs/Sharing.md`.
        func tell(_ name: String) {
            guard isThorough else { return }
            let lost = fates[.lostAndExplained, default: 0]
            print("walk: \(states) states; \(lost) ends with a lost session, each explained; \(name)")
        }

        var violations: [String] {
            fates.keys.compactMap { if case .violated(let text) = $0 { text } else { nil } }
        }
    }

    @Test(arguments: FleetWorld.ServerKind.allCases)
    func `30: without a fault no session is lost, and a sign-out at any moment holds`(kind: FleetWorld.ServerKind) async {
        let walk = await Walk(from: FleetWorld(kind, processes: 3, flights: 1, faults: .init(signOuts: 1)))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        #expect(walk.fates[.lostAndExplained] == nil)
        #expect(walk.fates[.kept, default: 0] > 0 && walk.fates[.signedOut, default: 0] > 0)
    }

    /// A server's grace period is stated, and then the store knows which processes have died.
    private static func facts(_ kind: FleetWorld.ServerKind) -> FleetWorld.Facts {
        kind == .grace ? .init(grace: FleetWorld.Server.grace, isDeathKnown: true) : .init()
    }

    @Test(arguments: FleetWorld.ServerKind.allCases)
    func `30: whatever goes wrong, each lost session has a reason`(kind: FleetWorld.ServerKind) async {
        let faults = FleetWorld.Faults(
            crashes: 1, freezes: .everyday(0, thorough: 1), lostMessages: 1, lostSwaps: 1, signOuts: .everyday(0, thorough: 1))
        let walk = await Walk(from: FleetWorld(kind, processes: 2, flights: 1, faults: faults, facts: Self.facts(kind)))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        // With a stated grace period only a freeze loses a session.
        #expect((walk.fates[.lostAndExplained] != nil) == (kind != .grace || isThorough))
        walk.tell("\(kind), 2 processes, \(faults)")
    }

    /// With three processes, any two faults.
    private static let pairs: [FleetWorld.Faults] = [
        .init(crashes: 2), .init(crashes: 1, freezes: 1), .init(crashes: 1, lostMessages: 1), .init(crashes: 1, lostSwaps: 1),
        .init(freezes: 1, lostMessages: 1), .init(freezes: 1, lostSwaps: 1), .init(lostMessages: 1, lostSwaps: 1),
        .init(crashes: 1, signOuts: 1), .init(freezes: 1, signOuts: 1), .init(lostMessages: 1, signOuts: 1),
        .init(lostSwaps: 1, signOuts: 1),
    ]

    @Test(.thorough, arguments: FleetWorld.ServerKind.allCases, pairs)
    func `30: with three processes and any two faults each lost session has a reason`(
        kind: FleetWorld.ServerKind, faults: FleetWorld.Faults
    ) async {
        let walk = await Walk(from: FleetWorld(kind, processes: 3, flights: 1, faults: faults, facts: Self.facts(kind)))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        walk.tell("\(kind), 3 processes, \(faults)")
    }

    @Test func `30: a crash before the request loses no session, not even if each process tries twice`() async {
        let faults = FleetWorld.Faults(crashes: 1, lostSwaps: .everyday(0, thorough: 1))
        let walk = await Walk(from: FleetWorld(.soft, processes: 2, flights: 2, faults: faults))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
    }

    @Test(arguments: isThorough ? [true, false] : [true])
    func `51: at a server with a grace period, stated or not, known deaths and a lost answer lose no session`(isStated: Bool)
        async
    {
        let facts = FleetWorld.Facts(grace: isStated ? FleetWorld.Server.grace : nil, isDeathKnown: true)
        let faults = FleetWorld.Faults(crashes: .everyday(1, thorough: 2), lostMessages: 1)
        let count = Int.everyday(2, thorough: 3)
        let walk = await Walk(from: FleetWorld(.grace, processes: count, flights: 1, faults: faults, facts: facts))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        #expect(walk.fates[.lostAndExplained] == nil && walk.fates[.kept, default: 0] > 0)
        walk.tell("grace, \(count) processes, \(faults), stated: \(isStated)")
    }

    /// A session is lost only if the server answers a request whose sender has died or given up.
    ///
    /// Had the others waited, the server would have replaced the token for nobody, so the wait would have lost the session as well.
    @Test(arguments: FleetWorld.ServerKind.allCases, [true, false])
    func `51: a token that is presented while an orphaned request is under way loses no session that a wait would have kept`(
        kind: FleetWorld.ServerKind, isDeathKnown: Bool
    ) async {
        let faults = FleetWorld.Faults(crashes: isDeathKnown ? 1 : 0, lostMessages: 1, timeOuts: 1)
        let facts = FleetWorld.Facts(isDeathKnown: isDeathKnown)
        let walk = await Walk(from: FleetWorld(kind, processes: 2, flights: 2, faults: faults, facts: facts))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        walk.tell("\(kind), 2 processes, \(faults)")
    }

    @Test(arguments: [10, 15, 30, 60])
    func `51: a take-over within a stated grace period loses no session, however slow the holder is`(seconds: Int) async {
        let grace = Duration.seconds(seconds)
        let facts = FleetWorld.Facts(grace: grace, isSlow: true)
        let faults = FleetWorld.Faults(crashes: 1)
        let count = Int.everyday(2, thorough: 3)
        let start = FleetWorld(.grace, lasting: grace, processes: count, flights: 1, faults: faults, facts: facts)
        let walk = await Walk(from: start)
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        #expect(walk.fates[.kept, default: 0] > 0)
        walk.tell("grace of \(seconds) s, \(count) processes, slow, \(faults)")
    }

    @Test(arguments: FleetWorld.ServerKind.allCases)
    func `34: a process that has read one user's session doesn't get the next user's token in it`(kind: FleetWorld.ServerKind)
        async
    {
        let faults = FleetWorld.Faults(freezes: .everyday(0, thorough: 1), lostSwaps: .everyday(0, thorough: 1), changes: 1)
        let walk = await Walk(from: FleetWorld(kind, processes: 2, flights: 2, faults: faults))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        walk.tell("\(kind), 2 processes, \(faults)")
    }

    @Test(arguments: FleetWorld.ServerKind.allCases)
    func `37: a process that is refused for its own fault signs no other out`(kind: FleetWorld.ServerKind) async {
        let facts = FleetWorld.Facts(misfit: 0)
        let faults = FleetWorld.Faults(lostSwaps: .everyday(0, thorough: 1))
        let count = Int.everyday(2, thorough: 3)
        let walk = await Walk(from: FleetWorld(kind, processes: count, flights: 2, faults: faults, facts: facts))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        #expect(walk.fates[.lostAndExplained] == nil && walk.fates[.kept, default: 0] > 0)
        walk.tell("\(kind), \(count) processes, one refused for its own fault, \(faults)")
    }

    @Test(arguments: FleetWorld.ServerKind.allCases)
    func `37: a process that is refused for its own fault and restarted for each attempt signs out no other`(
        kind: FleetWorld.ServerKind
    ) async {
        let facts = FleetWorld.Facts(misfit: 0, isMisfitRestarted: true)
        let count = Int.everyday(2, thorough: 3)
        let walk = await Walk(from: FleetWorld(kind, processes: count, flights: 3, faults: .init(), facts: facts))
        #expect(walk.violations.isEmpty && walk.stuck == 0, "\(walk.fates)")
        #expect(walk.fates[.lostAndExplained] == nil && walk.fates[.kept, default: 0] > 0)
        walk.tell("\(kind), \(count) processes, one refused for its own fault and started again")
    }
}
