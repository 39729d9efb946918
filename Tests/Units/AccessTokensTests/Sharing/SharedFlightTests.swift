import Testing
import Foundation

@testable import AccessTokens

/// One flight, with everything around it in the test's hands.
private struct Cockpit {
    var flight: SharedFlight
    var moment = SharedFlight.Moment(now: .zero, wall: 1_000)

    init(_ change: (inout SharedFlight.Setting) -> Void = { _ in }, knowing knowledge: SharedFlight.Knowledge = .init()) {
        var setting = SharedFlight.Setting(owner: "me")
        change(&setting)
        flight = SharedFlight(setting, knowing: knowledge)
    }

    mutating func take(_ event: SharedFlight.Event, isAbandoned: Bool = false) -> SharedFlight.Step {
        flight.next(event, at: moment, isAbandoned: isAbandoned)
    }

    /// Runs until the refresh token is being presented, and returns the marked record.
    mutating func present(_ record: GrantRecord) throws -> GrantRecord {
        guard case .swap(let marked, ifAt: .init("1")) = take(.read(seen(record))) else { throw Unexpected() }
        guard case .load(record.token) = take(.swapped(.init("2"))) else { throw Unexpected() }
        return marked
    }

    struct Unexpected: Error {}
}

private func seen(_ record: GrantRecord, at revision: String = "1", running: Bool? = nil) -> SharedFlight.Sighting {
    .init(record: record, revision: .init(revision), isHolderRunning: running)
}

private func record(_ generation: UInt64, _ token: AccessToken? = .granted("old"), age: Double = 0, mark: String? = nil)
    -> GrantRecord
{
    var record = GrantRecord(write: "w\(generation)", generation: generation, token: token, received: 1_000 - age)
    record.mark = mark.map { .init(owner: $0, holder: nil, limit: .seconds(60)) }
    return record
}

private let expired = record(3, .granted("old"), age: 4_000)
private let refused = SharedFlight.Failure(error: TokenServiceError(.loadFailed, remedy: .signIn), isDefinite: true)
private let unclear = SharedFlight.Failure(error: TokenServiceError(.loadFailed), isDefinite: false)
private let storeDown = SharedFlight.Failure.store(StoreTimeout())

extension SharedFlight.Step {
    var outcome: SharedFlight.Ending.Outcome? { if case .end(let ending) = self { ending.outcome } else { nil } }
    var discarded: AccessToken? { if case .end(let ending) = self { ending.discarded } else { nil } }
    var written: GrantRecord? { if case .swap(let record, _) = self { record } else { nil } }
}

@Suite("A flight of a shared grant")
struct SharedFlightTests {
    @Test func `26: a refresh token is presented only after the own mark stands in its record`() {
        var cockpit = Cockpit()
        let step = cockpit.take(.read(seen(expired)))
        #expect(step.written?.mark?.owner == "me" && step.written?.generation == 3)
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: expired.token))
    }

    @Test func `26: who was stopped between mark and request reads again`() {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        cockpit.moment.now = .seconds(30)
        #expect(cockpit.take(.swapped(.init("2"))) == .read)
    }

    @Test func `27: a store that can't be written spends nothing`() {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        #expect(cockpit.take(.storeFailed(storeDown)) == .read)
        #expect(cockpit.take(.read(seen(expired))).outcome == .failed(storeDown))
    }

    @Test func `28: a token is saved before the flight ends with it, in place of the record that was spent`() throws {
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

    @Test func `28: whose record has moved on adopts theirs and hands its own token over`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("mine")))
        let step = cockpit.take(.conflict(seen(record(4, .granted("theirs")), at: "5")))
        #expect(step.outcome == .token(.granted("theirs"), age: .zero, isAdopted: true))
        #expect(step.discarded?.value == "mine")
    }

    @Test func `29: a newer token is adopted without a request`() {
        var cockpit = Cockpit({ $0.isRefresh = true }, knowing: .init(generation: 3))
        let step = cockpit.take(.read(seen(record(4, .granted("new"), age: 60))))
        #expect(step.outcome == .token(.granted("new"), age: .seconds(60), isAdopted: true))
    }

    @Test func `29: who is refused adopts what another has saved meanwhile`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        let step = cockpit.take(.failed(refused))
        #expect(step.written?.token == expired.token, "a failure clears nothing")
        #expect(
            cockpit.take(.conflict(seen(record(4, .granted("new")), at: "5"))).outcome
                == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `29: who is refused waits for another's mark, and never presents the token again`() throws {
        var cockpit = Cockpit()
        _ = try cockpit.present(expired)
        _ = cockpit.take(.failed(refused))
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.conflict(seen(other, at: "5"))) == .wait(from: .init("5"), atMost: .seconds(120)))
        cockpit.moment.now = .seconds(120)
        #expect(cockpit.take(.waited) == .read)
        let step = cockpit.take(.read(seen(other, at: "5")))
        #expect(step.written?.trouble?.isRefused == true && step.written?.mark == nil)
        #expect(cockpit.take(.swapped(.init("6"))).outcome == .failed(refused))
    }

    @Test func `31: a holder that is known dead is waited for as long as its mark says`() {
        var cockpit = Cockpit()
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.read(seen(other, running: false))) == .wait(from: .init("1"), atMost: .seconds(60)))
    }

    @Test func `31: a silent holder is waited for until the doubt has passed, over several flights`() {
        var cockpit = Cockpit()
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(120)))
        _ = cockpit.take(.waited)
        cockpit.moment.now = .seconds(30)
        #expect(cockpit.take(.read(seen(other)), isAbandoned: true).outcome == .failed(.abandoned))
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        next.moment.now = .seconds(40)
        #expect(next.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(80)))
        next.moment.now = .seconds(120)
        _ = next.take(.waited)
        #expect(next.take(.read(seen(other))).written?.mark?.owner == "me")
    }

    @Test func `a mark that is taken back brings no earlier stray mark back`() throws {
        let marked = record(3, .granted("old"), age: 4_000, mark: "me")
        var cockpit = Cockpit { $0.strays = [StrayMark(write: marked.write, base: nil, restoring: expired)] }
        #expect(cockpit.take(.read(seen(marked))).written?.mark?.owner == "me")
        guard case .end(let ending) = cockpit.take(.swapped(.init("2")), isAbandoned: true) else { throw Cockpit.Unexpected() }
        #expect(ending.stray != nil && ending.stray?.record.mark == nil)
    }

    @Test(arguments: [59, 60, 61])
    func `31: a mark's time counts from when it was written if the store can tell that`(age: Int) throws {
        var sighting = seen(record(3, .granted("old"), age: 4_000, mark: "dead"), running: false)
        sighting.age = .seconds(age)
        var cockpit = Cockpit()
        let step = cockpit.take(.read(sighting))
        if age < 60 {
            #expect(step == .wait(from: .init("1"), atMost: .seconds(60 - age)))
        } else {
            #expect(step.written?.mark?.owner == "me")
        }
    }

    @Test func `31: while the machine sleeps, a mark's time doesn't pass for a store that knows its age`() throws {
        var sighting = seen(record(3, .granted("old"), age: 4_000, mark: "other"))
        sighting.age = .seconds(1)
        var cockpit = Cockpit()
        #expect(cockpit.take(.read(sighting)) == .wait(from: .init("1"), atMost: .seconds(119)))
        cockpit.moment.now = .seconds(600)
        #expect(cockpit.take(.waited) == .read)
        sighting.age = .seconds(2)
        #expect(cockpit.take(.read(sighting)) == .wait(from: .init("1"), atMost: .seconds(118)))
    }

    @Test(arguments: [true, false])
    func `31: a load that spends nothing doesn't wait for a process that has ended`(isRepeatable: Bool) throws {
        var cockpit = Cockpit { $0.isRepeatable = isRepeatable }
        let token = AccessToken("old", lifetime: .seconds(1), refreshToken: isRepeatable ? "r" : nil)
        let step = cockpit.take(.read(seen(record(3, token, age: 4_000, mark: "dead"), running: false)))
        #expect(step.written?.mark?.owner == "me")
    }

    @Test func `31: callers whose time is over while another process loads learn that`() throws {
        var cockpit = Cockpit { $0.deadline = .seconds(30) }
        let sighting = seen(record(3, .granted("old"), age: 4_000, mark: "other"))
        #expect(cockpit.take(.read(sighting)) == .wait(from: .init("1"), atMost: .seconds(29)))
        cockpit.moment.now = .seconds(29)
        #expect(cockpit.take(.waited) == .read)
        guard case .failed(let failure)? = cockpit.take(.read(sighting)).outcome else { throw Cockpit.Unexpected() }
        #expect(failure.retryAfter == nil && failure.error.remedy == .retry)
        #expect(failure.error.underlying as? FailedElsewhere == .busy)
    }

    @Test(arguments: [61, 62])
    func `31: callers don't wait for a process that has ended if their time is over first`(limit: Int) throws {
        var cockpit = Cockpit { $0.deadline = .seconds(limit) }
        let sighting = seen(record(3, .granted("old"), age: 4_000, mark: "dead"), running: false)
        let step = cockpit.take(.read(sighting))
        guard limit == 61 else { return #expect(step == .wait(from: .init("1"), atMost: .seconds(60))) }
        guard case .failed(let failure)? = step.outcome else { throw Cockpit.Unexpected() }
        #expect(failure.retryAfter == .seconds(60) && failure.error.remedy == .retry)
        #expect(failure.error.underlying as? FailedElsewhere == .ended)
    }

    @Test func `31: without a doubt a silent holder's mark stays`() {
        var cockpit = Cockpit { $0.doubt = .never }
        cockpit.moment.now = .seconds(1_000_000)
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: nil))
    }

    @Test(arguments: [-1e9, 0, 1e9, 1e300])
    func `32: a mark is waited out on the own clock from its first sight, whatever the record's times say`(received: Double) {
        var cockpit = Cockpit()
        cockpit.moment = .init(now: .seconds(77), wall: nil)
        var other = record(3, .granted("old"), mark: "other")
        other.received = received
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(120)))
        _ = cockpit.take(.waited)
        cockpit.moment.now = .seconds(100)
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(97)))
    }

    @Test(arguments: [(-5_000.0, 0), (-1, 0), (0, 0), (10, 10), (3_600, 3_600), (1e300, 3_600)])
    func `33: an age is at least nothing and at most the life, whatever the clocks say`(age: Double, seconds: Int) {
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
        #expect(step.outcome == .signedOut && step.discarded?.value == "late")
    }

    @Test func `34: a sign-out elsewhere ends the session here`() {
        var cockpit = Cockpit({ $0.isRefresh = true }, knowing: .init(generation: 3))
        var tombstone = record(4, nil)
        tombstone.fence = "other.fence.1"
        #expect(cockpit.take(.read(seen(tombstone))).outcome == .signedOut)
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        #expect(next.take(.read(seen(record(4, nil)))).written?.mark != nil, "once; then the service is empty, not locked")
    }

    @Test func `35: a sign-in elsewhere is adopted`() {
        var cockpit = Cockpit(knowing: .init(generation: 4))
        let step = cockpit.take(.read(seen(record(5, .granted("new")))))
        #expect(step.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `36: while the store is down an unrepeatable load spends nothing, and a repeatable one goes on in memory`() {
        var cockpit = Cockpit()
        #expect(cockpit.take(.storeFailed(storeDown)).outcome == .failed(storeDown))
        var repeatable = Cockpit { $0.isRepeatable = true }
        #expect(repeatable.take(.storeFailed(storeDown)) == .load(previous: nil))
        #expect(repeatable.take(.loaded(.hour("new"))).outcome == .token(.hour("new"), age: .zero, isAdopted: false))
    }

    @Test func `37: the fleet has one failure count, and its pause is everyone's`() throws {
        var cockpit = Cockpit()
        var failed = expired
        failed.trouble = .init(failures: 6, owner: "other", isRefused: false, pause: .zero, time: 900)
        _ = try cockpit.present(failed)
        let noted = try #require(cockpit.take(.failed(unclear)).written)
        #expect(noted.trouble?.failures == 7 && noted.trouble?.pause == .seconds(32))
        #expect(noted.mark?.owner == "me", "the server may be at it: only an answer takes the mark away")
        var other = Cockpit { $0.owner = "another" }
        var free = noted
        free.mark = nil
        other.moment.wall = 1_002
        guard case .failed(let failure) = other.take(.read(seen(free))).outcome else { throw Cockpit.Unexpected() }
        #expect(failure.retryAfter == .seconds(30))
    }

    @Test func `39: in the soft window a foreign mark ends the attempt silently`() {
        var cockpit = Cockpit({ $0.isRefresh = true }, knowing: .init(generation: 3))
        #expect(cockpit.take(.read(seen(record(3, mark: "other")))).outcome == .gaveUp)
    }

    @Test func `40: of those who would load at the same moment one does, and the others wait for it`() throws {
        var cockpit = Cockpit()
        _ = cockpit.take(.read(seen(expired)))
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.conflict(seen(other, at: "2"))) == .wait(from: .init("2"), atMost: .seconds(120)))
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
    func `41: a save that came to nothing is tried again until the store takes it`(isKeyLocked: Bool) throws {
        let failure = isKeyLocked ? SharedFlight.Failure.store(SealFailure(underlying: CancellationError())) : storeDown
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

    @Test func `42: a record says nothing of its token in holder, owner or write`() throws {
        var cockpit = Cockpit()
        let mark = try #require(cockpit.take(.read(seen(expired))).written)
        #expect(mark.write == "me.0.1" && mark.mark?.owner == "me")
        let text = String(decoding: try GrantRecordFormat.encode(mark), as: UTF8.self)
        #expect(text.hasPrefix(#"{"format":"tokenservice.grant","generation":3,"mark":{"#), "\(text)")
        #expect(try GrantRecordFormat.decode(GrantRecordFormat.encode(mark)) == mark)
    }

    @Test func `a record of another version is an error that quotes nothing`() throws {
        let text = String(decoding: try GrantRecordFormat.encode(expired), as: UTF8.self)
        let next = text.replacing(#""version":1"#, with: #""version":2"#)
        #expect(throws: GrantRecordError(.unsupportedVersion(2))) { try GrantRecordFormat.decode(.init(next.utf8)) }
        #expect(throws: GrantRecordError(.foreign)) { try GrantRecordFormat.decode(.init(text.dropLast().utf8)) }
    }
}
