import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A flight that finds the mark of another process")
struct TakeOverTests {
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

    /// Reads until the doubt about another service's mark has passed, and replaces the mark.
    private func takeOver() -> (cockpit: Cockpit, step: SharedFlight.Step, mark: GrantRecord?) {
        var cockpit = Cockpit()
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        _ = cockpit.take(.read(seen(other)))
        cockpit.moment.now = .seconds(120)
        _ = cockpit.take(.waited)
        let mark = cockpit.take(.read(seen(other))).written
        let step = cockpit.take(.swapped(.init("2")))
        return (cockpit, step, mark)
    }

    @Test func `30: who takes a mark over leaves its holder the time for a late save, and adopts that`() throws {
        var (cockpit, step, _) = takeOver()
        #expect(step == .wait(from: .init("2"), atMost: .seconds(4)))
        #expect(cockpit.take(.waited) == .read)
        let adoption = cockpit.take(.read(seen(record(4, .granted("new")), at: "3")))
        #expect(adoption.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `30: who takes a mark over presents the token if no late save comes`() throws {
        var (cockpit, _, mark) = takeOver()
        let marked = try #require(mark)
        cockpit.moment.now = .seconds(124)
        _ = cockpit.take(.waited)
        let again = cockpit.take(.read(seen(marked, at: "2")))
        #expect(again.written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("3"))) == .load(previous: .granted("old")))
    }

    @Test(arguments: [4, 5])
    func `30: no mark is taken over if the callers' time is over before a late save could come`(rest: Int) throws {
        var cockpit = Cockpit { $0.deadline = .seconds(120 + rest) }
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        _ = cockpit.take(.read(seen(other)))
        cockpit.moment.now = .seconds(120)
        _ = cockpit.take(.waited)
        let step = cockpit.take(.read(seen(other)))
        guard rest == 4 else { return #expect(step.written?.mark?.owner == "me") }
        guard case .failed(let failure)? = step.outcome else { throw Cockpit.Unexpected() }
        #expect(failure.error.underlying as? FailedElsewhere == .busy)
    }

    @Test func `a token that can't be saved is tried again so often that a late save comes in time`() throws {
        var cockpit = Cockpit()
        let marked = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("new")))
        for attempt in 1...20 {
            _ = cockpit.take(.storeFailed(storeDown))
            guard case .pause(let pause) = cockpit.take(.storeFailed(storeDown)) else { continue }
            #expect(pause <= .seconds(3), "attempt \(attempt)")
            _ = cockpit.take(.waited)
            _ = cockpit.take(.read(seen(marked, at: "2")))
        }
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

    @Test func `30: if the holder is known to be dead, the next process presents the token at once`() throws {
        var cockpit = Cockpit()
        var sighting = seen(record(3, .granted("old"), age: 4_000, mark: "dead"), running: false)
        sighting.age = .seconds(60)
        #expect(cockpit.take(.read(sighting)).written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: .granted("old")))
    }

    @Test(arguments: [true, false])
    func `30: if a token may be presented twice, the next process doesn't wait for a late save`(isRepeatable: Bool) throws {
        var cockpit = Cockpit { $0.isRepeatable = isRepeatable }
        let token = AccessToken("old", lifetime: .seconds(1), refreshToken: isRepeatable ? "r" : nil)
        let other = record(3, token, age: 4_000, mark: "other")
        _ = cockpit.take(.read(seen(other)))
        cockpit.moment.now = .seconds(120)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other))).written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: token))
    }

    @Test(arguments: [0, 59])
    func `31: with a stated grace period a dead holder's mark is taken at once`(age: Int) throws {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        var sighting = seen(record(3, .granted("old"), age: 4_000, mark: "dead"), running: false)
        sighting.age = .seconds(age)
        #expect(cockpit.take(.read(sighting)).written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: .granted("old")))
    }

    @Test func `31: a stated grace period doesn't shorten the wait for a holder that may be alive`() {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.read(seen(other))) == .wait(from: .init("1"), atMost: .seconds(120)))
    }

    @Test func `31: with a stated grace period a holder's death is noticed within a second`() {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        let other = record(3, .granted("old"), age: 4_000, mark: "other")
        #expect(cockpit.take(.read(seen(other, running: true))) == .wait(from: .init("1"), atMost: .seconds(1)))
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other, running: false))).written?.mark?.owner == "me")
    }
}
