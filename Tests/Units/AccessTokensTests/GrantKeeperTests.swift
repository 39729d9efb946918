import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

@Suite("The order of a store's operations") struct GrantKeeperTests {
    private static let token = AccessToken("a", refreshToken: "r")
    private static let save = GrantKeeper.Kind.save(token, start: .zero)

    @Test func `an operation that a later one makes pointless is dropped, unless it has begun`() {
        var queue = Store()
        for kind in [Self.save, Self.save, .remove, Self.save] { queue.add(kind) }
        #expect(queue.names == ["save", "remove", "save"])
        let ids = queue.operations.map(\.id)
        #expect(queue.add(Self.save).map(\.id) == [ids[2]], "of two saves the later one is enough")
        #expect(queue.names == ["save", "remove", "save"], "a removal before a save still has to be done")
        queue.add(.remove)
        #expect(queue.names == ["save", "remove"], "a removal makes all before it pointless")
        queue.add(.remove)
        #expect(queue.names == ["save", "remove"] && queue.operations[0].id == ids[0])
    }

    @Test func `a load makes no operation pointless, and a save makes loads pointless`() {
        var queue = Store()
        for kind in [GrantKeeper.Kind.remove, .load, .load] { queue.add(kind) }
        #expect(queue.names == ["remove", "load", "load"])
        queue.add(Self.save)
        #expect(queue.names == ["remove", "save"])
    }

    @Test func `a dropped operation's replacement takes over its fences and its duty to hand over`() {
        var queue = Store()
        queue.add(.load)
        queue.add(Self.save, fence: 1, handsOver: true)
        queue.add(.remove, fence: 2)
        queue.add(.remove, fence: 3)
        #expect(queue.operations[1].fences == [1, 2, 3] && queue.operations[1].handsOver)
        queue.add(Self.save, fence: 4)
        #expect(!queue.operations[2].handsOver && queue.operations[2].fences == [4])
    }

    @Test func `a fence keeps its limit when it waits for a later operation, and a flight's save sets none for it`() {
        var queue = Store()
        queue.add(.remove, deadline: 4)
        queue.add(Self.save, deadline: 5, flight: 1)
        queue.add(Self.save, deadline: 6, fence: 1)
        #expect(queue.operations.last?.deadline == .seconds(6))
        queue.add(.remove, deadline: 7, fence: 2)
        #expect(queue.operations.last?.deadline == .seconds(6))
    }

    @Test func `an operation is late at its deadline, once, and then nothing waits for it or behind it`() {
        var queue = Store()
        queue.add(Self.save, deadline: 5, flight: 1, fence: 1)
        queue.add(.remove, deadline: 7, fence: 2)
        #expect(queue.nextDeadline == .seconds(5))
        #expect(queue.elapse(to: .seconds(4)).fences.isEmpty && !queue.isLate)
        let late = queue.elapse(to: .seconds(5))
        #expect(late.fences == [[1], [2]] && late.flights == [1])
        #expect(queue.isLate && queue.nextDeadline == .seconds(95), "when it counts as lost")
        #expect(queue.operations.allSatisfy { $0.fences.isEmpty && $0.flight == nil && $0.isLate })
        #expect(queue.elapse(to: .seconds(94)).fences.isEmpty)
        queue.add(Self.save, deadline: 200, fence: 3)
        #expect(queue.operations.last?.isLate == true && queue.nextDeadline == .seconds(95))
    }

    @Test func `a late load still belongs to its flight, so what it finds is used`() {
        var queue = Store()
        queue.add(.load, deadline: 5, flight: 1)
        #expect(queue.elapse(to: .seconds(5)).flights == [1] && queue.operations[0].flight == 1)
    }

    @Test func `once a late operation has ended, the next one's limit counts`() {
        var queue = Store()
        queue.add(Self.save, deadline: 5)
        _ = queue.elapse(to: .seconds(5))
        #expect(queue.end(at: .zero) != nil && queue.end(at: .zero) == nil)
        queue.add(.remove, deadline: 15)
        #expect(!queue.isLate && queue.nextDeadline == .seconds(15))
    }

    @Test func `an operation that waited behind a late one gets a new limit when its turn comes`() {
        var queue = Store()
        queue.add(Self.save, deadline: 5)
        _ = queue.elapse(to: .seconds(5))
        queue.add(Self.save, deadline: 11)
        #expect(queue.end(at: .seconds(20)) != nil && queue.operations[0].isLate == false)
        #expect(!queue.isLate && queue.nextDeadline == .seconds(25), "the store answers: what comes now waits for it again")
    }

    /// Every fence ends once and in time, the queue stays short, and the last write is the latest decision.
    @Test(arguments: 1...20) func `every promise holds under random operations, ends and time steps`(seed: UInt64) {
        var random = SplitMix64(seed: seed), queue = Store(), now = Duration.zero
        var waiting: [Int: Duration] = [:], fence = 0, begun: Int?, hasFailed = false
        func check(_ condition: Bool, _ promise: Comment) {
            #expect(condition, promise)
            if !condition { hasFailed = true }
        }
        func end(_ fences: [Int], at moment: Duration) {
            for fence in fences {
                let limit = waiting.removeValue(forKey: fence)
                check(limit.map { moment <= $0 } == true, "a fence ends once, in time")
            }
        }
        for _ in 1...2_000 where !hasFailed {
            switch Int.random(in: 0..<6, using: &random) {
            case 0...2:
                fence += 1
                let kind = [GrantKeeper.Kind.load, Self.save, .remove][Int.random(in: 0..<3, using: &random)]
                if case .load = kind, !queue.operations.isEmpty { continue }
                let isLate = queue.isLate
                if !isLate { waiting[fence] = now + .seconds(5) }
                queue.add(kind, until: now + .seconds(5), fence: fence, handsOver: true)
                if case .remove = kind { check(queue.operations.count <= 2, "nothing is done before a removal for nothing") }
                check(queue.operations.last?.kind.name == kind.name, "the last word is the last one's")
            case 3: if let ended = queue.end(at: now) { end(ended.fences, at: now) }
            default:
                now += .seconds(1)
                queue.elapse(to: now).fences.forEach { end($0, at: now) }
            }
            check(queue.operations.count <= 3, "a store that hangs collects nothing")
            if let begun, let first = queue.operations.first { check(first.id >= begun, "what has begun is not dropped") }
            begun = queue.operations.first?.id
            check(Set(queue.operations.flatMap(\.fences)) == Set(waiting.keys), "no fence is lost")
            if queue.isLate { check(waiting.isEmpty, "nothing waits for a store that is late") }
        }
    }
}

/// A keeper with a store of its own, and what it has told.
private struct Store {
    private var keeper = GrantKeeper(
        .store, RefreshPolicy(), isRepeatable: false, timeoutsUntilForgotten: RefreshPolicy.timeoutsUntilForgotten)
    private var outbox = TokenService.StateMachine.Outbox()

    var operations: [GrantKeeper.Operation] { keeper.operations }
    var names: [String] { operations.map(\.kind.name) }
    var isLate: Bool { keeper.isLate }
    var nextDeadline: Duration? { keeper.nextDeadline }

    /// Adds an operation; returns the pending ones that it supersedes.
    @discardableResult
    mutating func add(
        _ kind: GrantKeeper.Kind, deadline: Int = 5, flight: Int? = nil, fence: Int? = nil, handsOver: Bool = false
    ) -> [GrantKeeper.Operation] {
        add(kind, until: .seconds(deadline), flight: flight, fence: fence, handsOver: handsOver)
    }

    @discardableResult
    mutating func add(
        _ kind: GrantKeeper.Kind, until deadline: Duration, flight: Int? = nil, fence: Int? = nil, handsOver: Bool = false
    ) -> [GrantKeeper.Operation] {
        let before = operations
        if let fence { keeper.noteFence(fence) }
        let now = deadline - RefreshPolicy.storeTimeout
        keeper.add(kind, flight: flight, isFence: fence != nil, handsOver: handsOver, at: now, &outbox)
        let after = operations.map(\.id)
        return before.filter { !after.contains($0.id) }
    }

    /// Ends the running operation; returns it.
    mutating func end(at now: Duration) -> GrantKeeper.Operation? {
        guard let running = operations.first else { return nil }
        _ = keeper.ended(running, found: nil, givenUp: [], nil, at: now, &outbox)
        return running
    }

    /// Lets time pass; returns which fences and flights wait no longer, for each operation that is late.
    mutating func elapse(to now: Duration) -> (fences: [[Int]], flights: [Int]) {
        outbox.effects = []
        let flights = keeper.elapse(to: now, &outbox).map(\.flight)
        return (outbox.effects.compactMap { if case .endFences(let numbers, _, _) = $0 { numbers } else { nil } }, flights)
    }
}

extension GrantKeeper.Kind {
    fileprivate var name: String {
        switch self {
        case .load: "load"
        case .save: "save"
        case .remove: "remove"
        }
    }
}
