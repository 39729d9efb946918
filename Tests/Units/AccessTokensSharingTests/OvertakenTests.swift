import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

/// The program's operations at one of two services.
private enum Act: CaseIterable {
    case nothing, replace, reset, change

    var swaps: Int { [.nothing: 0, .replace: 1, .reset: 1, .change: 2][self] ?? 0 }
    var endsWithToken: Bool { self == .replace || self == .change }
}

/// The second service's knowledge before any fault; a user has signed in at the first one.
private enum Start: CaseIterable {
    /// It has never read the record.
    case nothing
    /// It has handed out the first one's session.
    case session
    /// It has signed out, and the first one has noticed.
    case signedOut
}

/// Two services, each of which may sign in or out while its store fails, and an oracle that knows which user each token belongs
/// to.
private struct Rivalry: CustomStringConvertible {
    let start: Start
    let acts: [Act]
    /// The faults of each service's swaps.
    let faults: [[OddSharedStore.Fault?]]
    /// Which service is asked first after that.
    let first: Int
    /// Whether late swaps take effect before the second service acts, or at the end.
    let landsEarly: Bool
    /// Whether the second service can't even read meanwhile.
    let isUnread: Bool

    var description: String {
        "\(start), \(acts), \(faults), \(first) is asked first, lands early: \(landsEarly), unread: \(isUnread)"
    }

    /// The user who is signed in with a token.
    ///
    /// A sign-in in a session, without a sign-out before it, is for the same principal. A late sign-in by a service that has
    /// never read may be for any principal.
    private func principal(_ token: String) -> String {
        let index = token == "2" ? 1 : 0
        let isOwn = acts[index] == .change || start == .signedOut || start == .nothing && isUnread && index == 1
        return token != "1" && isOwn ? token : "1"
    }

    /// The sign-in that a token descends from.
    private static func root(_ token: AccessToken?) -> String? { token.map { String($0.value.prefix(1)) } }

    func problems() -> [String] {
        let odd = OddSharedStore(), fleet = Fleet(store: { odd.over($0) })
        var problems: [String] = []
        let logs = fleet.services.map { service in
            let log = Log<TokenEvent.Name>(), events = service.events()
            _ = fleet.stage.start { for await event in events { log.append(event.name) } }
            return log
        }
        func resets(_ index: Int) -> Int { logs[index].entries.filter { $0 == .reset }.count }
        func land() {
            fleet.stage.start { await odd.land() }
            fleet.stage.run()
        }
        /// Answers the loads of a call that waits for one.
        func answer(_ caller: Stage.Player<AccessToken>, _ index: Int) {
            guard !caller.isDone, let load = try? fleet.load(index) else { return }
            if let root = Self.root(load.previous) {
                fleet.succeed(load, with: .granted("\(root)+\(index)"))
            } else {
                fleet.fail(load, with: ScriptedFailure.grantRefused)
            }
        }

        _ = fleet.signIn(0, with: .granted("1"))
        var handed: [AccessToken?] = [fleet.call(0).value, start == .nothing ? nil : fleet.call(1).value]
        if start == .signedOut {
            _ = fleet.signOut(1)
            if fleet.retry(0, insteadOf: .granted("1")).code != .reset { problems.append("0 doesn't notice the sign-out") }
            handed = [nil, nil]
        }
        for index in [1, 0] {
            let act = acts[index]
            odd.isDown = isUnread && index == 1
            for fault in faults[index] where !odd.isDown { odd.next(fault) }
            if act == .reset || act == .change { _ = fleet.signOut(index) }
            if act.endsWithToken { _ = fleet.signIn(index, with: .granted(index == 1 ? "2" : "3")) }
            odd.isDown = false
            if act != .nothing { handed[index] = act.endsWithToken ? fleet.call(index).value : nil }
            if act.endsWithToken, handed[index] == nil { problems.append("\(index) doesn't hand out its sign-in") }
            if landsEarly { land() }
        }
        for index in [first, 1 - first] {
            let before = resets(index), old = handed[index]
            let caller = old.map { fleet.retry(index, insteadOf: $0) } ?? fleet.call(index)
            answer(caller, index)
            land()
            // A caller that asks after the session has ended gets the record's token.
            let next = fleet.call(index)
            answer(next, index)
            let count = resets(index) - before
            let got = Self.root(caller.value) ?? Self.root(next.value)
            let isSame = Self.root(old) == got
            let isOther = old.flatMap(Self.root).map { got == nil || principal($0) != principal(got ?? "") } ?? false
            if isOther, count != 1 || caller.code != .reset {
                problems.append("\(index): \(old?.value ?? "") then \(got ?? "none"), \(count) resets, \(caller.code as Any)")
            }
            if count > 1 || isSame && old != nil && count > 0 {
                problems.append("\(index): \(count) resets, had \(got ?? "none")")
            }
            if old == nil, count > 0 { problems.append("\(index) has no session, and it ends") }
        }
        // The other service adopts a sign-in once its own token has expired; a refusal pauses a service for a minute.
        for index in [0, 1, 0, 1] {
            fleet.advance(by: .seconds(3600))
            answer(fleet.call(index), index)
        }
        fleet.advance(by: .seconds(61))
        let ends = [0, 1].map { index in
            let caller = fleet.call(index)
            answer(caller, index)
            return Self.root(caller.value)
        }
        if ends[0] != ends[1] { problems.append("0 has \(ends[0] ?? "none"), 1 has \(ends[1] ?? "none")") }
        let discarded = fleet.discarded.entries
        let overtaken = discarded.filter { $0.hasSuffix(" superseded") }
        if Set(overtaken).count != overtaken.count { problems.append("handed over twice: \(overtaken)") }
        if let token = fleet.record?.token, discarded.contains(where: { $0.hasPrefix("\(token.value) ") }) {
            problems.append("\(token.value) is handed over and in the record")
        }
        return problems
    }
}

@Suite("A sign-in that another service's overtakes")
struct OvertakenTests {
    private static func faults(_ swaps: Int) -> [[OddSharedStore.Fault?]] {
        let all: [OddSharedStore.Fault?] = [nil, .fails, .isLate, .losesAnswer]
        return (0..<swaps).reduce([[]]) { lists, _ in lists.flatMap { list in all.map { list + [$0] } } }
    }

    private static func rivalries(_ theirs: Act, _ mine: Act) -> [Rivalry] {
        var all: [Rivalry] = []
        for start in Start.allCases {
            for (mineFail, theirsFail) in faults(mine.swaps).flatMap({ mine in faults(theirs.swaps).map { (mine, $0) } }) {
                for first in [0, 1] {
                    for (landsEarly, isUnread) in [(true, false), (false, false), (false, true)] {
                        all.append(
                            Rivalry(
                                start: start, acts: [theirs, mine], faults: [theirsFail, mineFail], first: first,
                                landsEarly: landsEarly, isUnread: isUnread))
                    }
                }
            }
        }
        return all
    }

    @Test(arguments: Act.allCases, Act.allCases)
    fileprivate func
        `34: in any order of sign-ins and sign-outs, while swaps fail, a session that another ends is over once`(
            theirs: Act, mine: Act
        )
    {
        // The step is a prime number, so that every choice of each kind occurs.
        let step = Int.everyday(61, thorough: 1)
        for (number, rivalry) in Self.rivalries(theirs, mine).enumerated() where number % step == 0 {
            let problems = rivalry.problems()
            #expect(problems.isEmpty, "\(rivalry)")
        }
    }

    private let store = OddSharedStore()

    private func fleet(isRepeatable: Bool = false) -> Fleet {
        Fleet(isRepeatable: isRepeatable, store: { [store] in store.over($0) })
    }

    @Test func `34: a sign-in that took effect late and was renewed elsewhere doesn't end its own service's session`() throws {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        store.next(.fails, .isLate)
        _ = fleet.signOut(1)
        #expect(fleet.signIn(1, with: .granted("ben"))?.storeFailure != nil)
        fleet.stage.start { [store] in await store.land() }
        fleet.advance(by: .seconds(3550))
        #expect(fleet.call(0).code == .reset)
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("ben's next"))
        #expect(fleet.retry(1, insteadOf: .granted("ben")).value?.value == "ben's next")
    }

    @Test func `34: a sign-in after one that was never saved is a change of user for sessions begun since`() {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        store.next(.fails)
        #expect(fleet.signIn(1, with: .granted("anna's next"))?.storeFailure != nil)
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        _ = fleet.signIn(1, with: .granted("anna's last"))
        #expect(fleet.retry(0, insteadOf: .granted("ben")).code == .reset)
        #expect(fleet.call(0).value?.value == "anna's last")
    }

    @Test func `36: a token loaded in memory after a sign-out is dropped once another service's sign-in has come`() throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.signIn(0, with: .granted("anna"))
        store.next(.fails, .fails)
        _ = fleet.signOut(1)
        let caller = fleet.call(1)
        fleet.succeed(try fleet.load(1), with: .hour("program"))
        #expect(caller.value?.value == "program")
        _ = fleet.signIn(0, with: .granted("anna's next"))
        let retry = fleet.retry(1, insteadOf: .hour("program"))
        #expect(retry.code == .reset && fleet.call(1).value?.value == "anna's next")
    }

    @Test func `34: a load in memory for a session that another service has ended installs no token`() throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.signIn(0, with: .granted("anna"))
        store.next(.fails, .fails, .fails)
        _ = fleet.signOut(1)
        _ = fleet.signIn(1, with: .granted("ben"))
        let renewing = fleet.retry(1, insteadOf: .granted("ben"))
        let load = try fleet.load(1)
        fleet.advance(by: .seconds(31))
        #expect(renewing.code == .loadTimedOut)
        _ = fleet.signOut(0)
        #expect(fleet.call(1).code == .reset)
        fleet.succeed(load, with: .granted("ben's next"))
        #expect(fleet.services[1].cachedToken == nil)
        #expect(!fleet.call(1).isDone)
        #expect(try fleet.load(1).previous == nil)
    }

    @Test(arguments: [true, false])
    func `a sign-in after one that was overtaken unnoticed signs out the other service's session`(
        isSettled: Bool
    ) async throws {
        let memory = InMemorySharedTokenStore()
        let session = SharedSession(
            store.over(memory), TokenSharing(), clock: ServiceClock.opened(ManualClock()), environment: .init())
        func put(_ token: String?, number: Int, in session: SharedSession) {
            session.noteFence(token.map { StoredToken(.granted($0), received: .distantPast) }, number: number)
        }
        let other = SharedSession(memory, TokenSharing(), clock: ServiceClock.opened(ManualClock()), environment: .init())
        put("anna", number: 1, in: other)
        try await other.settle()
        put("ben", number: 1, in: session)
        store.next(.fails)
        await #expect(throws: OddSharedStore.Down.self) { try await session.settle() }
        put("anna's next", number: 2, in: other)
        try await other.settle()
        if isSettled { try await session.settle() }
        put("ben's next", number: 2, in: session)
        try await session.settle()
        let record = try GrantRecordFormat.decode(#require(memory.contents).bytes)
        #expect(record.token?.value == "ben's next")
        #expect((record.signedOut == record.generation - 1) == isSettled)
        #expect(session.takeEnd() == nil)
        #expect(
            session.takeDisplaced().contains {
                $0.token.value == "anna's next" && $0.reason == (isSettled ? .signedOut : .replaced)
            })
    }

    @Test func `a sign-in after one just found to be overtaken signs out the other service's session`() {
        let first = SharedFence(StoredToken(.granted("mine"), received: .distantPast), number: 1, owner: "me", after: nil)
        var second = SharedFence(StoredToken(.granted("next"), received: .distantPast), number: 2, owner: "me", after: first)
        second.followsSettled()
        let record = GrantRecord(write: "theirs", generation: 4, token: .granted("theirs"))
        var state = SharedSession.State()
        state.knowledge = .init(seen: 3, signedOut: 0, session: "mine")
        let overtaken = state.settle(first, by: record)
        #expect(overtaken == 0)
        let isNews = second.endsSession(before: record, knowing: state.knowledge)
        #expect(!isNews)
        guard case .write(let next) = second.verdict(on: record, wall: nil) else { return #expect(Bool(false)) }
        #expect(next.signedOut == 5 && next.generation == 6)
    }
}
