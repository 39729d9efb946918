import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

/// Waiting for a load without entering the actor: the pure value behind the lock.
@Suite struct LobbyTests {
    typealias Lobby = TokenService.Lobby<String>

    /// A lobby in which a load may be joined for ten seconds.
    private static var loading: Lobby {
        var lobby = Lobby()
        _ = lobby.open(TokenService.Snapshot(generation: 1, joinableUntil: .seconds(10)), answering: nil)
        return lobby
    }

    @Test(arguments: [(9, true), (10, false), (11, false)])
    func `a load may be joined until its limit`(second: Int, isJoined: Bool) {
        var lobby = Self.loading
        let place = lobby.join(now: .seconds(second))
        #expect((place != nil) == isJoined)
    }

    @Test(arguments: [(0, false), (1, true), (2, false)])
    func `only callers of a load's own generation may join it`(seen: Int, isJoined: Bool) {
        var lobby = Self.loading
        let place = lobby.join(generation: seen)
        #expect((place != nil) == isJoined)
    }

    @Test func `a caller that is more urgent than the waiters raises their urgency, until it leaves`() throws {
        var lobby = Self.loading
        lobby.admit("urgent", urgency: Urgency(.medium))
        let place = try lobby.place()
        let raised = [TaskPriority.medium, .high, .high].map { lobby.raiseUrgency(of: place, to: Urgency($0)) }
        #expect(raised == [false, true, false] && lobby.urgency == Urgency(.high))
        _ = lobby.leave(place, with: .left)
        let isRaised = lobby.raiseUrgency(of: place, to: Urgency(TaskPriority(rawValue: 40)))
        #expect(!isRaised)
    }

    @Test(arguments: [true, false])
    func `an urgency lasts as long as any caller waits`(isAnswered: Bool) throws {
        var lobby = Self.loading
        let place = lobby.admit(urgency: Urgency(.high))
        lobby.admit("other", urgency: Urgency(.low))
        _ = lobby.open(lobby.snapshot, answering: nil)
        #expect(lobby.urgency == Urgency(.high))
        if isAnswered {
            _ = lobby.answer("a")
        } else {
            _ = lobby.leave(place, with: .left)
            _ = lobby.open(lobby.snapshot, answering: nil)
            #expect(lobby.urgency == Urgency(.high), "who had it is not known")
            _ = lobby.answer("a")
        }
        #expect(lobby.urgency == .background)
    }

    @Test func `an urgency ends when the last caller leaves`() {
        var lobby = Self.loading
        let place = lobby.admit(urgency: Urgency(.high))
        _ = lobby.leave(place, with: .left)
        _ = lobby.open(lobby.snapshot, answering: nil)
        #expect(lobby.urgency == .background)
    }

    @Test func `without a running load there is nothing to join`() {
        var lobby = Lobby()
        let before = lobby.join(generation: 0)
        _ = lobby.open(TokenService.Snapshot(), answering: nil)
        let after = lobby.join(generation: 0)
        #expect(before == nil && after == nil)
    }

    @Test func `no caller joins while the actor decides, and the actor learns of all who joined before`() {
        var lobby = Self.loading
        _ = lobby.join()
        _ = lobby.join()
        let first = lobby.close(), meanwhile = lobby.join(), second = lobby.close()
        #expect(first.joined == 2 && first.isAwaited && meanwhile == nil)
        #expect(second.joined == 0 && second.isAwaited)
    }

    private static func snapshot(_ token: AccessToken?, generation: Int = 1) -> TokenService.Snapshot {
        TokenService.Snapshot(token: token, generation: generation, joinableUntil: token == nil ? .seconds(10) : nil)
    }

    private static func sample(_ act: Int) -> TokenService.Notice.Act {
        [.signOut, .signIn(.hour("new")), .refusal(.hour("old"))][act]
    }

    @Test(arguments: 0..<3, [true, false])
    func `52: a token that the program has ended isn't shown, whatever the actor decides meanwhile`(act: Int, isOpen: Bool) {
        var lobby = Lobby()
        _ = lobby.open(Self.snapshot(.hour("old")), answering: nil)
        if !isOpen { _ = lobby.close() }
        _ = lobby.note(Self.sample(act), for: nil, at: .zero)
        #expect(lobby.snapshot.hit.token == nil)
        if !isOpen { _ = lobby.open(Self.snapshot(.hour("old")), answering: nil) }
        #expect(lobby.snapshot.hit.token == nil && lobby.join() == nil)
        let notices = lobby.close().notices
        #expect(notices.count == 1 && lobby.notices.isEmpty)
        _ = lobby.open(Self.snapshot(.hour("next"), generation: lobby.snapshot.hit.generation), answering: nil)
        #expect(lobby.snapshot.hit.token?.value == "next", "the machine has learnt of it")
    }

    @Test func `52: no later caller joins a load from before a fence, whose own waiters still get its answer`() throws {
        var lobby = Self.loading
        let place = try lobby.place()
        _ = lobby.close()
        _ = lobby.note(.signOut, for: nil, at: .zero)
        let late = lobby.join(generation: lobby.snapshot.hit.generation)
        _ = lobby.open(Self.snapshot(nil), answering: .success(.hour("old")))
        #expect(late == nil && lobby.join(generation: lobby.snapshot.hit.generation) == nil)
        #expect(lobby.collectAnswer(at: place).name == "old")
    }

    @Test func `52: a fence during a decision takes a generation after the one that the decision itself ends`() {
        var lobby = Self.loading
        _ = lobby.close()
        _ = lobby.note(.signOut, for: nil, at: .zero)
        _ = lobby.open(Self.snapshot(nil, generation: 2), answering: nil)
        #expect(lobby.snapshot.hit.generation == 3)
        #expect(lobby.close().notices.map(\.number) == [3])
    }

    @Test func `52: a fence that is meant for an earlier generation has no effect`() {
        var lobby = Self.loading
        let isNoted = [0, 1, 1].map { lobby.note(.signOut, for: nil, at: .zero, in: $0) }
        #expect(isNoted == [false, true, false])
    }

    @Test func `callers are answered in the order of their places, not of their suspensions`() throws {
        var lobby = Self.loading
        let first = try lobby.place(), second = try lobby.place()
        lobby.admit("third", urgency: Urgency(.background))
        _ = lobby.suspend("second", at: second)
        _ = lobby.suspend("first", at: first)
        let answered = lobby.answer("a")
        #expect(answered == ["first", "second", "third"])
        #expect(lobby.waiters.count == 0)
    }

    @Test func `an answer reaches suspended callers and those on their way, but none who left`() throws {
        var lobby = Self.loading, places: [Lobby.Place] = []
        for _ in 0..<6 { places.append(try lobby.place()) }
        for index in [0, 2, 4] { _ = lobby.suspend("\(index)", at: places[index]) }
        let suspended = lobby.leave(places[2], with: .left), coming = lobby.leave(places[3], with: .left)
        #expect(suspended == "2" && coming == nil)
        let answered = lobby.answer("a"), late = [1, 3, 5].map { lobby.suspend("late", at: places[$0]) }
        #expect(answered == ["0", "4"] && late == [false, false, false])
        let collected = places.map { lobby.collectAnswer(at: $0).name }
        #expect(collected == ["a", "a", "left", "left", "a", "a"])
    }

    @Test func `an answer is kept until its last caller has collected it, and never reaches a later caller`() throws {
        var lobby = Self.loading
        let early = [try lobby.place(), try lobby.place()]
        _ = lobby.answer("a")
        let late = try lobby.place()
        lobby.admit("callbacks", urgency: Urgency(.low))
        _ = lobby.answer("b")
        #expect(lobby.uncollectedAnswers == 3)
        #expect(lobby.collectAnswer(at: early[1]).name == "a")
        #expect(lobby.collectAnswer(at: late).name == "b")
        #expect(lobby.collectAnswer(at: early[0]).name == "a")
        #expect(lobby.uncollectedAnswers == 0)
    }

    @Test func `the limits of callers who left don't pile up behind one caller that waits`() {
        var lobby = Self.loading
        lobby.admit("patient", urgency: Urgency(.medium))
        for _ in 1...10_000 {
            let place = lobby.admit(urgency: Urgency(.medium), until: .seconds(9))
            _ = lobby.leave(place, with: .left)
        }
        let last = lobby.admit(urgency: Urgency(.medium), until: .seconds(9))
        _ = lobby.suspend("late", at: last)
        #expect(lobby.limitCount <= 64)
        let late = lobby.expire(at: .seconds(9))
        #expect(late == ["late"])
    }

    @Test func `a caller has its place before its load is announced and others can join behind it`() {
        let stage = Stage(), waiting = Log<Int>(), eavesdropper = Eavesdropper(stage)
        let service = TokenService(
            environment: .driven(by: eavesdropper, clock: ManualClock()), loader: ScriptedLoader())
        // The load's task is an effect: when it starts, its caller is waiting, and others may join.
        eavesdropper.listen {
            service.lobby.withLock { if $0.snapshot.joinableUntil > .zero { waiting.append($0.waiters.count) } }
        }
        _ = stage.start { try await service.retrieveToken() }
        #expect(!waiting.entries.isEmpty && waiting.entries.allSatisfy { $0 == 1 })
        eavesdropper.listen {}
    }

    /// The events that a caller can meet after it has taken its place.
    enum Happening: String, CaseIterable { case settles, left, a, b }

    @Test func `a caller gets the first answer, once, in whatever order it suspends, leaves and is answered`() throws {
        var orders: Set<[Happening]> = [[]]
        for _ in 0..<5 { orders.formUnion(orders.flatMap { order in Happening.allCases.map { order + [$0] } }) }
        // The caller suspends once, at any point.
        for order in orders where order.count(where: { $0 == .settles }) == 1 {
            var lobby = Self.loading, answers: [String] = []
            let place = try lobby.place()
            for happening in order {
                switch happening {
                case .settles: if !lobby.suspend("caller", at: place) { answers.append(lobby.collectAnswer(at: place).name) }
                case .left: if lobby.leave(place, with: .left) != nil { answers.append(lobby.collectAnswer(at: place).name) }
                case .a, .b: answers += lobby.answer(happening.rawValue).map { _ in lobby.collectAnswer(at: place).name }
                }
            }
            let first = order.first { $0 != .settles }?.rawValue
            #expect(answers == [first].compactMap { $0 }, "\(order)")
            #expect(lobby.waiters.count == (first == nil ? 1 : 0) && lobby.uncollectedAnswers == 0, "\(order)")
        }
    }
}

extension TokenService.Lobby<String> {
    fileprivate mutating func join(generation: Int = 1, now: Duration = .zero) -> Place? {
        join(seen: generation, at: now)
    }

    fileprivate mutating func place() throws -> Place {
        let place = join()
        return try #require(place)
    }

    /// Answers with this token; returns the callers to be resumed.
    fileprivate mutating func answer(_ token: String) -> [String] {
        var resumed: [String] = []
        open(snapshot, answering: .success(.hour(token))).forEach { resumed.append($0) }
        return resumed
    }
}

extension Result<AccessToken, any Error> {
    fileprivate static var left: Self { .failure(CancellationError()) }

    fileprivate var name: String { (try? get())?.value ?? "left" }
}
