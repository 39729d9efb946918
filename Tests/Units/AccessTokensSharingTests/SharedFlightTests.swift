import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A flight of a shared grant")
struct SharedFlightTests {
    @Test func `26: a refresh token is presented only after the service's own mark stands in the record`() {
        var cockpit = Cockpit()
        let step = cockpit.take(.read(seen(expired)))
        #expect(step.written?.mark?.owner == "me" && step.written?.generation == 3)
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: expired.token))
    }

    @Test func `26: a service that was stopped between mark and request reads the record again`() {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        cockpit.moment.now = .seconds(30)
        #expect(cockpit.take(.swapped(.init("2"))) == .read)
    }

    @Test func `27: while the store can't be written, no refresh token is spent`() {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        #expect(cockpit.take(.storeFailed(storeDown)) == .read)
        #expect(cockpit.take(.read(seen(expired))).outcome == .failed(storeDown))
    }

    @Test func `28: a token is saved in place of the spent record before the flight ends with it`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        guard case .swap(let saved, ifAt: .init("2")) = cockpit.take(.loaded(.granted("new"))) else { throw Cockpit.Unexpected() }
        #expect(saved.generation == 4 && saved.mark == nil && saved.token?.value == "new")
        #expect(cockpit.take(.swapped(.init("3"))).outcome == .token(.granted("new"), age: .zero, isAdopted: false))
    }

    @Test func `28: a late holder saves the only living token although another has marked the record`() throws {
        var cockpit = Cockpit()
        let marked = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("new")))
        var other = marked
        other.mark?.owner = "other"
        other.write = "other.1"
        let step = cockpit.take(.conflict(seen(other, at: "5")))
        #expect(step.written?.token?.value == "new")
        #expect(step == .swap(try #require(step.written), ifAt: .init("5")))
    }

    @Test func `28: a service whose record has moved on adopts the record's token and hands its own over`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("mine")))
        let step = cockpit.take(.conflict(seen(record(4, .granted("theirs")), at: "5")))
        #expect(step.outcome == .token(.granted("theirs"), age: .zero, isAdopted: true))
        #expect(step.discarded?.value == "mine")
    }

    @Test func `29: a newer token is adopted without a request`() {
        var cockpit = Cockpit({ $0.plan.isRefresh = true }, knowing: .init(generation: 3))
        let step = cockpit.take(.read(seen(record(4, .granted("new"), age: 60))))
        #expect(step.outcome == .token(.granted("new"), age: .seconds(60), isAdopted: true))
    }

    @Test func `29: a refused service adopts the token that another one has saved meanwhile`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        let step = cockpit.take(.failed(refused))
        #expect(step.written?.token == expired.token, "a failure clears nothing")
        #expect(
            cockpit.take(.conflict(seen(record(4, .granted("new")), at: "5"))).outcome
                == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `29: a refused service waits for another's mark, and never presents the token again`() throws {
        var knowledge = SharedFlight.Knowledge()
        knowledge.served = expired.fence
        var cockpit = Cockpit(knowing: knowledge)
        _ = try cockpit.present(expired)
        _ = cockpit.take(.failed(refused))
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.conflict(seen(other, at: "5"))) == .wait(from: .init("5"), atMost: .seconds(111)))
        for time in [111, 120] {
            cockpit.moment.now = .seconds(time)
            #expect(cockpit.take(.waited) == .read)
            if time == 111 { _ = cockpit.take(.read(seen(other, at: "5"))) }
        }
        let step = cockpit.take(.read(seen(other, at: "5")))
        #expect(step.written?.trouble?.refuser == "me" && step.written?.mark == nil)
        #expect(cockpit.take(.swapped(.init("6"))).outcome == .failed(refused))
    }

    @Test func `taking back a mark restores no earlier stray mark`() throws {
        let marked = record(3, .granted("old"), age: 4_000, mark: "me")
        var cockpit = Cockpit { $0.strays = [StrayMark(write: marked.write, base: nil, restoring: expired)] }
        #expect(cockpit.take(.read(seen(marked))).written?.mark?.owner == "me")
        guard case .end(let ending) = cockpit.take(.swapped(.init("2")), isAbandoned: true) else { throw Cockpit.Unexpected() }
        #expect(ending.stray != nil && ending.stray?.record.mark == nil)
    }

    @Test(arguments: [-1e9, 0, 1e9, 1e300])
    func `32: a mark's wait counts on the service's own clock from its first read, whatever the record's times say`(
        received: Double
    ) {
        var cockpit = Cockpit()
        cockpit.moment = .init(now: .seconds(77), wall: nil)
        var other = record(3, .granted("old"), mark: "other")
        other.received = received
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(111)))
        _ = cockpit.take(.waited)
        cockpit.moment.now = .seconds(100)
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(88)))
    }

    /// Returns the pauses that a service is told, second by second, until it loads.
    private func pauses(
        notedAt noted: Double, age: (Int) -> Duration? = { _ in nil }, knowing knowledge: SharedFlight.Knowledge = .init()
    ) -> [Duration?] {
        var failed = expired, knowledge = knowledge, pauses: [Duration?] = []
        failed.trouble = .init(failures: 4, owner: "other", isRefused: false, pause: .seconds(8), time: noted)
        for second in 0..<100 {
            var cockpit = Cockpit(knowing: knowledge)
            cockpit.moment.now = .seconds(second)
            cockpit.moment.wall = 1_000 + Double(second)
            var sighting = seen(failed, at: "2")
            sighting.age = age(second)
            // Its own mark changes the revision, but not the failures.
            if second > 4 { sighting.revision = .init("3") }
            let step = cockpit.take(.read(sighting))
            guard case .failed(let failure)? = step.outcome else { return pauses }
            pauses.append(failure.retryAfter)
            knowledge = cockpit.flight.knowledge
        }
        return pauses
    }

    /// What a service knows that has read the record before the failure.
    private var known: SharedFlight.Knowledge {
        var cockpit = Cockpit { $0.plan.isCheck = true }
        _ = cockpit.take(.read(seen(expired)))
        return cockpit.flight.knowledge
    }

    private static let eightDown = (1...8).reversed().map { Duration?.some(.seconds($0)) }

    @Test(arguments: [-3_600.0, -60, 0, 1, 60, 3_600, .infinity])
    func `32: a failure's pause counts on a service's own clock from when it first saw the failure`(offset: Double) {
        #expect(pauses(notedAt: 1_000 + offset, knowing: known) == Self.eightDown)
    }

    @Test func `32: the store's clock can only shorten a pause, even if it steps`() {
        #expect(pauses(notedAt: 5_000, age: { .seconds($0 + 3) }, knowing: known) == Self.eightDown, "it wasn't there before")
        #expect(pauses(notedAt: 5_000, age: { .seconds($0 + 3) }) == Array(Self.eightDown.dropFirst(3)))
        #expect(pauses(notedAt: 5_000, age: { $0 < 2 ? .seconds($0) : .zero }) == Self.eightDown)
    }

    @Test(arguments: [(1_000.0, 8), (997, 5), (992, 0), (900, 0), (1_001, 0), (4_600, 0)])
    func `32: a new service dates a failure by the wall clock, and tries at once if that date is in the future`(
        noted: Double, seconds: Int
    ) {
        #expect(pauses(notedAt: noted) == Array(Self.eightDown.suffix(seconds)))
    }

    @Test(arguments: [(-5_000.0, 0), (-1, 0), (0, 0), (10, 10), (3_600, 3_600), (1e300, 3_600)])
    func `33: a token's age is never negative and never more than its lifetime, whatever the clocks say`(
        age: Double, seconds: Int
    ) {
        #expect(record(1, age: age).age(at: 1_000) == .seconds(seconds))
        #expect(record(1, age: age).age(at: nil) == .seconds(3_600))
    }

    @Test func `33: a wall clock that was set back doesn't revive a token that the service has had`() {
        var cockpit = Cockpit(knowing: .init(generation: 3))
        #expect(cockpit.take(.read(seen(record(3, age: 0)))).written?.mark?.owner == "me")
    }

    @Test func `34: no late save brings a token back after a sign-out`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("late")))
        let step = cockpit.take(.conflict(seen(record(4, nil), at: "5")))
        #expect(step.outcome == .signedOut(isOfSession: true) && step.discarded?.value == "late")
    }

    @Test func `34: a sign-out elsewhere ends the session here`() {
        var cockpit = Cockpit({ $0.plan.isRefresh = true }, knowing: .init(generation: 3, signedOut: 0, session: "me.fence.1"))
        var tombstone = record(4, nil)
        (tombstone.fence, tombstone.signedOut) = ("other.fence.1", 4)
        #expect(cockpit.take(.read(seen(tombstone))).outcome == .signedOut(isOfSession: true))
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        #expect(next.take(.read(seen(record(4, nil)))).written?.mark != nil, "once; then the service is empty, not locked")
    }

    @Test func `35: a sign-in elsewhere is adopted`() {
        var cockpit = Cockpit(knowing: .init(generation: 4))
        let step = cockpit.take(.read(seen(record(5, .granted("new")))))
        #expect(step.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    // RFC 9449: a token can only be used in requests with a proof by its key.
    @Test(arguments: [("mine", true), ("another", false), (nil, true)])
    func `a sign-in elsewhere is adopted only if its token is bound to this service's key, or to none`(
        key: String?, isAdopted: Bool
    ) {
        var cockpit = Cockpit({ $0.plan.keyThumbprint = "mine" }, knowing: .init(generation: 4))
        let token = AccessToken("new", lifetime: .seconds(3_600), refreshToken: "grant", keyThumbprint: key)
        let step = cockpit.take(.read(seen(record(5, token))))
        #expect((step.outcome == .token(token, age: .zero, isAdopted: true)) == isAdopted)
        #expect((step.written?.mark != nil) == !isAdopted, "its grant is presented, which its server decides about")
    }

    @Test func `36: while the store is down an unrepeatable load spends nothing, and a repeatable one goes on in memory`() {
        var cockpit = Cockpit()
        #expect(cockpit.take(.storeFailed(storeDown)).outcome == .failed(storeDown))
        var repeatable = Cockpit { $0.plan.isRepeatable = true }
        #expect(repeatable.take(.storeFailed(storeDown)) == .load(previous: nil))
        #expect(repeatable.take(.loaded(.hour("new"))).outcome == .token(.hour("new"), age: .zero, isAdopted: false))
    }

    @Test func `37: the fleet has one failure count, and its pause holds for every service`() throws {
        var cockpit = Cockpit()
        var failed = expired
        failed.trouble = .init(failures: 6, owner: "other", isRefused: false, pause: .zero, time: 900)
        _ = try cockpit.present(failed)
        let noted = try #require(cockpit.take(.failed(unclear)).written)
        #expect(noted.trouble?.failures == 7 && noted.trouble?.pause == .seconds(32))
        #expect(noted.mark == nil, "nobody gets the answer any more")
        var other = Cockpit { $0.owner = "another" }
        other.moment.wall = 1_002
        guard case .failed(let failure) = other.take(.read(seen(noted))).outcome else { throw Cockpit.Unexpected() }
        #expect(failure.retryAfter == .seconds(30))
    }

    @Test func `39: in the soft window another service's mark ends the attempt silently`() {
        var cockpit = Cockpit({ $0.plan.isRefresh = true }, knowing: .init(generation: 3))
        #expect(cockpit.take(.read(seen(record(3, mark: "other")))).outcome == .gaveUp)
    }

    @Test func `40: of several services that would load at the same moment one does, and the others wait for it`() throws {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.conflict(seen(other, at: "2"))) == .wait(from: .init("2"), atMost: .seconds(111)))
        #expect(cockpit.take(.waited) == .read)
        #expect(cockpit.take(.read(seen(record(4, .granted("new")), at: "3"))).outcome != nil, "no swap, no request")
    }

    @Test func `41: a write whose answer was lost is recognised`() throws {
        var cockpit = Cockpit()
        let mark = try #require(cockpit.take(.read(seen(expired))).written)
        #expect(cockpit.take(.storeFailed(storeDown)) == .read)
        #expect(cockpit.take(.read(seen(mark, at: "2"))) == .load(previous: expired.token))
        let saved = try #require(cockpit.take(.loaded(.granted("new"))).written)
        #expect(cockpit.take(.storeFailed(storeDown)) == .read)
        #expect(cockpit.take(.read(seen(saved, at: "3"))).outcome == .token(.granted("new"), age: .zero, isAdopted: false))
    }

    @Test(arguments: [false, true])
    func `41: a failed save is tried again until the store takes it`(isKeyLocked: Bool) throws {
        let failure = isKeyLocked ? FlightFailure.store(SealFailure(underlying: CancellationError())) : storeDown
        var cockpit = Cockpit()
        let marked = try cockpit.present(expired)
        let saved = try #require(cockpit.take(.loaded(.granted("new"))).written)
        _ = cockpit.take(.storeFailed(failure))
        #expect(cockpit.take(.read(seen(marked, at: "2"))) == .swap(saved, ifAt: .init("2")))
        for pause in [200, 400, 800] {
            #expect(cockpit.take(.storeFailed(failure)) == .pause(.milliseconds(pause)))
            #expect(cockpit.take(.waited) == .read)
            #expect(cockpit.take(.read(seen(marked, at: "2"))) == .swap(saved, ifAt: .init("2")))
        }
        #expect(cockpit.take(.swapped(.init("3"))).outcome == .token(.granted("new"), age: .zero, isAdopted: false))
    }

    @Test func `42: a record's holder, owner and write reveal nothing about its token`() throws {
        var cockpit = Cockpit()
        let mark = try #require(cockpit.take(.read(seen(expired))).written)
        #expect(mark.write == "me.0.1" && mark.mark?.owner == "me")
        let text = String(decoding: try GrantRecordFormat.encode(mark), as: UTF8.self)
        #expect(text.hasPrefix(#"{"format":"tokenservice.grant","generation":3,"mark":{"#), "\(text)")
        #expect(try GrantRecordFormat.decode(GrantRecordFormat.encode(mark)) == mark)
    }

    @Test func `a record keeps the refresh token's expiration, also while it is marked`() throws {
        let end = Date(timeIntervalSinceReferenceDate: 0.1)
        let token = AccessToken("old", lifetime: .zero, refreshToken: "r", refreshTokenExpiration: end)
        var cockpit = Cockpit()
        let mark = try #require(cockpit.take(.read(seen(record(3, token, age: 4_000)))).written)
        #expect(mark.token?.refreshTokenExpiration == end)
        #expect(try GrantRecordFormat.decode(GrantRecordFormat.encode(mark)) == mark)
    }

    @Test func `a record of another version is an error that quotes nothing`() throws {
        let text = String(decoding: try GrantRecordFormat.encode(expired), as: UTF8.self)
        let next = text.replacing(#""version":2"#, with: #""version":3"#)
        #expect(throws: GrantRecordError(.unsupportedVersion(3))) { try GrantRecordFormat.decode(.init(next.utf8)) }
        #expect(throws: GrantRecordError(.foreign)) { try GrantRecordFormat.decode(.init(text.dropLast().utf8)) }
    }

    @Test(arguments: [true, false])
    func `a record of version 1 is read with its sign-out, and its refusal counts for no other service`(isTombstone: Bool) throws
    {
        var old = record(3, isTombstone ? nil : .granted("old"))
        old.fence = "other.fence.1"
        old.trouble = .init(failures: 2, owner: "other", isRefused: true, pause: .seconds(60), time: 900)
        let text = String(decoding: try GrantRecordFormat.encode(old), as: UTF8.self)
        let read = try GrantRecordFormat.decode(.init(text.replacing(#""version":2"#, with: #""version":1"#).utf8))
        #expect(read.signedOut == (isTombstone ? 3 : 0))
        #expect(read.trouble?.refuser == nil && read.trouble?.isRefused == false)
        #expect(read.token == old.token && read.fence == old.fence)
    }

    @Test func `a record is read as it was written`() throws {
        var written = record(3, .granted("old"), mark: "other")
        (written.fence, written.signedOut) = ("other.fence.1", 2)
        written.trouble = .init(failures: 2, owner: "a", refuser: "b", isRefused: true, pause: .seconds(60), time: 900)
        #expect(try GrantRecordFormat.decode(GrantRecordFormat.encode(written)) == written)
    }
}
