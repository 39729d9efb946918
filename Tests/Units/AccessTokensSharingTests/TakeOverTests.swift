import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A flight that finds the mark of another process")
struct TakeOverTests {
    private let other = record(3, .granted("old"), age: 4_000, mark: "other")

    private func seen(_ record: GrantRecord, age: Duration?, isSteady: Bool = false) -> SharedFlight.Sighting {
        .init(record: record, revision: .init("1"), age: age, isAgeSteady: isSteady)
    }

    @Test(arguments: [nil, 30])
    func `31: no flight waits for a holder that is known to be dead`(grace: Int?) throws {
        var cockpit = Cockpit { $0.serverGrace = grace.map { .seconds($0) } }
        let sighting = AccessTokensSharingTests.seen(other, running: false)
        #expect(cockpit.take(.read(sighting)).written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: .granted("old")))
    }

    @Test func `31: a holder's death is noticed within a second`() {
        var cockpit = Cockpit()
        let alive = AccessTokensSharingTests.seen(other, running: true)
        #expect(cockpit.take(.read(alive)) == .wait(from: .init("1"), atMost: .seconds(1)))
        _ = cockpit.take(.waited)
        let dead = AccessTokensSharingTests.seen(other, running: false)
        #expect(cockpit.take(.read(dead)).written?.mark?.owner == "me")
    }

    @Test func `31: the wait for a silent holder lasts until the doubt has passed, over several flights`() {
        var cockpit = Cockpit()
        #expect(cockpit.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(111)))
        _ = cockpit.take(.waited)
        cockpit.moment.now = .seconds(30)
        #expect(cockpit.take(.read(seen(other, age: nil)), isAbandoned: true).outcome == .gaveUp)
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        next.moment.now = .seconds(40)
        #expect(next.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(71)))
        next.moment.now = .seconds(111)
        _ = next.take(.waited)
        #expect(next.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(9)))
        next.moment.now = .seconds(120)
        _ = next.take(.waited)
        #expect(next.take(.read(seen(other, age: nil))).written?.mark?.owner == "me")
        #expect(next.take(.swapped(.init("2"))) == .load(previous: .granted("old")))
    }

    @Test func `39: a store failure before the second request of a load leaves no mark`() throws {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        let marked = AccessTokensSharingTests.seen(try cockpit.present(expired), at: "2")
        #expect(cockpit.take(.failed(unclear)) == .read)
        _ = cockpit.take(.read(marked))
        _ = cockpit.take(.storeFailed(storeDown))
        guard case .end(let ending) = cockpit.take(.read(marked)) else { throw Cockpit.Unexpected() }
        guard case .swap(let record, _)? = ending.stray?.remedy(for: marked) else { throw Cockpit.Unexpected() }
        #expect(record.mark == nil)
    }

    // MARK: After an outage of the store

    /// Reads the mark again after an outage that was longer than the doubt.
    private func afterOutage(_ change: (inout SharedFlight.Setting) -> Void = { _ in }) -> (Cockpit, SharedFlight.Step) {
        var first = Cockpit()
        _ = first.take(.read(seen(other, age: nil)))
        var cockpit = Cockpit(change, knowing: first.flight.knowledge)
        cockpit.moment.now = .seconds(300)
        let step = cockpit.take(.read(seen(other, age: nil)))
        return (cockpit, step)
    }

    @Test func `30: after an outage a holder has the time for a whole attempt to save, and its token is adopted`() {
        var (cockpit, step) = afterOutage()
        #expect(step == .wait(from: .init("1"), atMost: .seconds(9)))
        _ = cockpit.take(.waited)
        let adoption = cockpit.take(.read(AccessTokensSharingTests.seen(record(4, .granted("new")), at: "2")))
        #expect(adoption.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `30: a save that comes between the wait and the mark is adopted as well`() {
        var (cockpit, _) = afterOutage()
        cockpit.moment.now = .seconds(309)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other, age: nil))).written?.mark?.owner == "me")
        let adoption = cockpit.take(.conflict(AccessTokensSharingTests.seen(record(4, .granted("new")), at: "2")))
        #expect(adoption.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test(arguments: [true, false])
    func `30: the wait for a late save goes on over several flights, and begins again if the store fails`(fails: Bool) {
        var (cockpit, _) = afterOutage { $0.plan.deadline = .seconds(305) }
        cockpit.moment.now = .seconds(304)
        _ = cockpit.take(.waited)
        let end = cockpit.take(fails ? .storeFailed(storeDown) : .read(seen(other, age: nil)))
        #expect(end.outcome == .failed(fails ? storeDown : .elsewhere(.busy(rest: .seconds(5)))))
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        next.moment.now = .seconds(309)
        let step = next.take(.read(seen(other, age: nil)))
        if fails { #expect(step == .wait(from: .init("1"), atMost: .seconds(9))) } else { #expect(step.written?.mark != nil) }
    }

    @Test func `30: a failed save is tried again often enough for a late save to come in time`() throws {
        var cockpit = Cockpit { $0.plan.policy = RefreshPolicy(loadTimeout: .seconds(10)) }
        let marked = try cockpit.present(expired)
        _ = cockpit.take(.loaded(.granted("new")))
        var longest = Duration.zero
        for _ in 1...20 {
            _ = cockpit.take(.storeFailed(storeDown))
            guard case .pause(let pause) = cockpit.take(.storeFailed(storeDown)) else { continue }
            longest = max(longest, pause)
            _ = cockpit.take(.waited)
            _ = cockpit.take(.read(AccessTokensSharingTests.seen(marked, at: "2")))
        }
        // An attempt that begins just before the store recovers, the pause after it, and the next one.
        #expect(RefreshPolicy.storeTimeout + longest + .seconds(1) <= SharedFlight.lateSaveTime)
    }

    /// Lets a store that can be read refuse a mark, and returns the step after a later mark that it takes.
    private func afterRefusal() -> (Cockpit, SharedFlight.Step, GrantRecord?) {
        var (cockpit, _) = afterOutage()
        cockpit.moment.now = .seconds(309)
        _ = cockpit.take(.waited)
        _ = cockpit.take(.read(seen(other, age: nil)))
        _ = cockpit.take(.storeFailed(storeDown))
        #expect(cockpit.take(.read(seen(other, age: nil))).outcome == .failed(storeDown))
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        next.moment.now = .seconds(310)
        #expect(next.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(9)))
        next.moment.now = .seconds(319)
        _ = next.take(.waited)
        let marked = next.take(.read(seen(other, age: nil))).written
        let step = next.take(.swapped(.init("2")))
        return (next, step, marked)
    }

    @Test func `30: a holder whose saves a store refused has nine seconds from the first write that succeeds`() throws {
        var (cockpit, step, _) = afterRefusal()
        #expect(step == .wait(from: .init("2"), atMost: .seconds(9)))
        _ = cockpit.take(.waited)
        let adoption = cockpit.take(.read(AccessTokensSharingTests.seen(record(4, .granted("new")), at: "3")))
        #expect(adoption.outcome == .token(.granted("new"), age: .zero, isAdopted: true))
    }

    @Test func `30: a mark that waits for a late save is renewed before the token is presented`() throws {
        var (cockpit, _, marked) = afterRefusal()
        let own = AccessTokensSharingTests.seen(try #require(marked), at: "2")
        for (now, isOver) in [(320, false), (328, true)] {
            cockpit.moment.now = .seconds(now)
            _ = cockpit.take(.waited)
            #expect(cockpit.take(.read(own)).written?.mark?.owner == "me")
            let step = cockpit.take(.swapped(own.revision))
            #expect(step == (isOver ? .load(previous: .granted("old")) : .wait(from: own.revision, atMost: .seconds(8))))
        }
    }

    @Test func `30: a service that gives up while it waits for a late save leaves the holder's mark in the record`() throws {
        var (cockpit, _, marked) = afterRefusal()
        let own = AccessTokensSharingTests.seen(try #require(marked), at: "2")
        _ = cockpit.take(.waited)
        guard case .end(let ending) = cockpit.take(.read(own), isAbandoned: true) else { throw Cockpit.Unexpected() }
        guard case .swap(let record, _)? = ending.stray?.remedy(for: own) else { throw Cockpit.Unexpected() }
        #expect(record.mark?.owner == "other")
    }

    // MARK: The store's clock

    @Test(arguments: [(0, 120), (100, 20), (111, 9), (119, 9), (120, 9), (10_000, 9)])
    func `31: a mark's time counts from when it was written, if the store knows that`(age: Int, rest: Int) throws {
        var cockpit = Cockpit()
        var step = cockpit.take(.read(seen(other, age: .seconds(age))))
        for _ in 1...2 {
            guard case .wait(_, let pause?) = step, cockpit.moment.now < .seconds(rest) else { break }
            cockpit.moment.now += pause
            _ = cockpit.take(.waited)
            step = cockpit.take(.read(seen(other, age: .seconds(age) + cockpit.moment.now)))
        }
        #expect(step.written?.mark?.owner == "me")
        #expect(cockpit.moment.now == .seconds(rest))
    }

    /// Returns when a service takes over a mark that was written at zero, if the store's clock steps a second later.
    private func takeOver(stepping step: Int, isSteady: Bool = false) throws -> Duration {
        var cockpit = Cockpit()
        var now = Duration.zero
        for _ in 1...10_000 {
            // A store's age is at least zero.
            let age = max(now + (now > .seconds(1) ? .seconds(step) : .zero), .zero)
            let next = cockpit.take(.read(seen(other, age: age, isSteady: isSteady)))
            if next.written != nil { return now }
            _ = cockpit.take(.waited)
            now += .seconds(1)
            cockpit.moment.now = now
        }
        throw Cockpit.Unexpected()
    }

    @Test(arguments: [-3_600, -180, -60, 60, 180, 3_600])
    func `32: a step of the store's clock neither shortens a living holder's mark nor extends a dead one's`(
        seconds: Int
    ) throws {
        #expect(try takeOver(stepping: seconds) == .seconds(120))
    }

    @Test(arguments: [0, 60])
    func `32: a service that has read the record before limits a mark's age to the time since that read`(past: Int) {
        var first = Cockpit()
        _ = first.take(.read(AccessTokensSharingTests.seen(record(2, age: 10), at: "0")))
        var cockpit = Cockpit(knowing: first.flight.knowledge)
        cockpit.moment.now = .seconds(past)
        #expect(
            cockpit.take(.read(seen(other, age: .seconds(3_600)))) == .wait(from: .init("1"), atMost: .seconds(111 - past)))
    }

    @Test func `32: a new service believes in a mark's age only if a second read agrees`() {
        var cockpit = Cockpit()
        #expect(cockpit.take(.read(seen(other, age: .seconds(3_600)))) == .wait(from: .init("1"), atMost: .seconds(9)))
        _ = cockpit.take(.waited)
        cockpit.moment.now = .seconds(9)
        #expect(cockpit.take(.read(seen(other, age: .seconds(10)))) == .wait(from: .init("1"), atMost: .seconds(101)))
    }

    @Test func `31: if a store's clock doesn't count sleep, a mark's time doesn't pass while the machine sleeps`() throws {
        var cockpit = Cockpit()
        let step = cockpit.take(.read(seen(other, age: .seconds(1), isSteady: true)))
        #expect(step == .wait(from: .init("1"), atMost: .seconds(110)))
        cockpit.moment.now = .seconds(600)
        #expect(cockpit.take(.waited) == .read)
        let next = cockpit.take(.read(seen(other, age: .seconds(2), isSteady: true)))
        #expect(next == .wait(from: .init("1"), atMost: .seconds(109)))
    }

    // MARK: Callers' time

    @Test func `51: callers whose limit passes while another process loads learn how long the wait may last`() throws {
        var cockpit = Cockpit { $0.plan.deadline = .seconds(30) }
        #expect(cockpit.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(29)))
        cockpit.moment.now = .seconds(29)
        #expect(cockpit.take(.waited) == .read)
        guard case .failed(let failure)? = cockpit.take(.read(seen(other, age: nil))).outcome else { throw Cockpit.Unexpected() }
        #expect(failure.retryAfter == nil && failure.error.remedy == .retry)
        let reason = try #require(failure.error.underlying as? FailedElsewhere)
        #expect(reason == .busy(rest: .seconds(91)))
        #expect(reason.description.contains("for 92 s more at most") && reason.description.contains("loadTimeout"))
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.min)])
    func `51: a mark with any limit at all is waited for, and its error says how long`(limit: Duration) throws {
        for sharing in [TokenSharing(transportLimit: limit), TokenSharing(transportLimit: limit, doubt: .after(limit))] {
            var cockpit = Cockpit {
                ($0.transportLimit, $0.doubt) = (sharing.transportLimit, sharing.doubt)
                $0.plan.deadline = .seconds(30)
            }
            var marked = other
            marked.mark?.limit = .seconds(Int64.max)
            _ = cockpit.take(.read(seen(marked, age: nil)))
            cockpit.moment.now = .seconds(29)
            _ = cockpit.take(.waited)
            let outcome = cockpit.take(.read(seen(marked, age: nil))).outcome
            guard case .failed(let failure)? = outcome else { throw Cockpit.Unexpected() }
            #expect("\(failure.error)".contains("s more at most"))
        }
    }

    @Test func `31: a silent holder's mark is never taken over if the doubt is unlimited`() throws {
        var cockpit = Cockpit {
            $0.doubt = .never
            $0.serverGrace = .seconds(30)
            $0.plan.deadline = .seconds(1_000_001)
        }
        cockpit.moment.now = .seconds(999_999)
        guard case .wait = cockpit.take(.read(seen(other, age: nil))) else { throw Cockpit.Unexpected() }
        cockpit.moment.now = .seconds(1_000_001)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other, age: nil))).outcome == .failed(.elsewhere(.busy(rest: nil))))
    }

    // MARK: Loads that spend nothing

    private func unspent(isRepeatable: Bool) -> GrantRecord {
        let token = AccessToken("old", lifetime: .seconds(1), refreshToken: isRepeatable ? "r" : nil)
        return record(3, token, age: 4_000, mark: "other")
    }

    @Test(arguments: [true, false], [TokenSharing.Doubt.standard, .never])
    func `51: a load that spends nothing waits ten seconds for a silent holder, and doesn't wait for a late save`(
        isRepeatable: Bool, doubt: TokenSharing.Doubt
    ) throws {
        var cockpit = Cockpit {
            $0.plan.isRepeatable = isRepeatable
            $0.doubt = doubt
        }
        let other = unspent(isRepeatable: isRepeatable)
        #expect(cockpit.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(10)))
        cockpit.moment.now = .seconds(10)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other, age: nil))).written?.mark?.owner == "me")
        #expect(cockpit.take(.swapped(.init("2"))) == .load(previous: other.token))
    }

    @Test(arguments: [(0, 2), (1, 4), (20, 42), (90, 120)])
    func `51: a service that has loaded itself waits twice as long as that took, plus two seconds`(took: Int, rest: Int) throws {
        var first = Cockpit()
        _ = try first.present(expired)
        first.moment.now = .seconds(took)
        _ = first.take(.loaded(.hour("new")))
        _ = first.take(.swapped(.init("3")))
        var cockpit = Cockpit({ $0.plan.isRepeatable = true }, knowing: first.flight.knowledge)
        cockpit.moment.now = .seconds(took)
        let step = cockpit.take(.read(AccessTokensSharingTests.seen(record(5, .hour("old"), age: 4_000, mark: "other"), at: "4")))
        #expect(step == .wait(from: .init("4"), atMost: .seconds(rest)))
    }

    // MARK: A stated grace period

    @Test(arguments: [(9, 120), (10, 9), (15, 13.5), (30, 27), (60, 54), (300, 120)])
    func `51: a stated grace period bounds the wait for a silent holder, if its limit leaves time within the period`(
        grace: Int, rest: Double
    ) {
        var cockpit = Cockpit { $0.serverGrace = .seconds(grace) }
        var other = other
        other.mark?.limit = min(SharedFlight.wait(within: .seconds(grace)) ?? .seconds(60), .seconds(60))
        let step = cockpit.take(.read(seen(other, age: nil)))
        let pause = rest > 9 ? rest - 9 : 9
        #expect(step == .wait(from: .init("1"), atMost: .seconds(min(rest, pause))))
        cockpit.moment.now = .seconds(rest) - .milliseconds(1)
        _ = cockpit.take(.waited)
        guard rest > 9 else { return }
        cockpit.moment.now = .seconds(rest - 9)
        _ = cockpit.take(.read(seen(other, age: nil)))
        cockpit.moment.now = .seconds(rest)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(seen(other, age: nil))).written?.mark?.owner == "me")
    }

    @Test func `31: the wait for a holder with a longer limit lasts until its request can arrive only within the period`() {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        // Limit 60 s: its request may arrive up to 27 s after this service's.
        #expect(cockpit.take(.read(seen(other, age: nil))) == .wait(from: .init("1"), atMost: .seconds(33 - 9)))
    }

    @Test func `31: a stated grace period doesn't shorten the wait for a holder that is running`() {
        var cockpit = Cockpit { $0.serverGrace = .seconds(30) }
        let sighting = AccessTokensSharingTests.seen(other, running: true)
        _ = cockpit.take(.read(sighting))
        cockpit.moment.now = .seconds(119)
        _ = cockpit.take(.waited)
        _ = cockpit.take(.read(sighting))
        cockpit.moment.now = .seconds(127)
        _ = cockpit.take(.waited)
        #expect(cockpit.take(.read(sighting)) == .wait(from: .init("1"), atMost: .seconds(1)))
    }

    @Test(arguments: [
        (nil, nil, 30, 60), (30, nil, 13.5, 27), (60, nil, 27, 54), (70, nil, 30, 60), (10, nil, 4.5, 9), (30, "process", 30, 60),
    ])
    func `51: a stated grace period cuts the time in which a holder sends, unless its death can be seen`(
        grace: Int?, holder: String?, sending: Double, limit: Int
    ) throws {
        var cockpit = Cockpit {
            $0.serverGrace = grace.map { .seconds($0) }
            $0.holder = holder
        }
        #expect(cockpit.take(.read(AccessTokensSharingTests.seen(expired))).written?.mark?.limit == .seconds(limit))
        _ = cockpit.take(.swapped(.init("2")))
        #expect(cockpit.flight.sendingEnd == .seconds(sending))
        var late = Cockpit { $0.serverGrace = grace.map { .seconds($0) } }
        late.flight = SharedFlight(cockpit.flight.setting)
        _ = late.take(.read(AccessTokensSharingTests.seen(expired)))
        late.moment.now = .seconds(sending)
        #expect(late.take(.swapped(.init("2"))) == .read)
    }
}
