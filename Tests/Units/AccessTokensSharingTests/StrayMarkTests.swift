import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Marks that have lost their purpose")
struct StrayMarkTests {
    private let store = OddSharedStore()

    /// Two services whose token has expired.
    private func fleet(isRepeatable: Bool = false) -> Fleet {
        let fleet = Fleet(isRepeatable: isRepeatable, store: { [store] in store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        return fleet
    }

    private func land(_ fleet: Fleet) {
        fleet.stage.start { [store] in await store.land() }
        fleet.stage.run()
    }

    @Test func `a mark whose swap was given up can't take effect later`() throws {
        let fleet = fleet()
        store.next(.isLate)
        #expect(fleet.call(0).code == .storeFailed)
        land(fleet)
        #expect(fleet.record?.mark == nil)
        #expect(fleet.record?.token?.value == "first")
        _ = fleet.call(1)
        #expect(try fleet.load(1).previous?.refreshToken == "first's grant")
    }

    @Test func `a mark that took effect after all is taken back once the store works again`() throws {
        let fleet = fleet()
        store.next(.isLate, .fails, .fails)
        #expect(fleet.call(0).code == .storeFailed)
        land(fleet)
        #expect(fleet.record?.mark != nil)
        fleet.advance(by: .seconds(1))
        fleet.advance(by: .seconds(2))
        #expect(fleet.record?.mark == nil)
    }

    @Test func `a mark for a load that no caller awaits any longer is taken back, and nothing is presented`() throws {
        let fleet = fleet()
        store.hold()
        let caller = fleet.call(0)
        let change = fleet.stage.start { [service = fleet.services[0]] in await service.reset() }
        store.release()
        fleet.stage.run()
        #expect(caller.code == .reset && change.isDone)
        #expect(fleet.record?.mark == nil)
        #expect(fleet.loaders[0].loadCount == 0)
    }

    @Test func `a refusal that couldn't be written is written later, and removes the mark`() throws {
        let fleet = fleet()
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        store.isDown = true
        fleet.fail(load, with: ScriptedFailure.grantRefused)
        #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
        #expect(fleet.record?.mark != nil)
        store.isDown = false
        fleet.advance(by: .seconds(1))
        #expect(fleet.record?.mark == nil)
        #expect(fleet.record?.trouble?.refuser != nil)
    }

    @Test func `a lost answer that couldn't be noted is noted later, and removes the mark`() throws {
        let fleet = fleet()
        _ = fleet.call(0)
        let load = try fleet.load(0)
        store.isDown = true
        fleet.fail(load, with: ScriptedFailure.transient)
        #expect(fleet.record?.mark != nil)
        store.isDown = false
        fleet.advance(by: .seconds(1))
        #expect(fleet.record?.mark == nil && fleet.record?.trouble?.failures == 1)
    }

    @Test func `a repeatable load's token that could not be saved is saved later`() throws {
        let fleet = fleet(isRepeatable: true)
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        store.isDown = true
        fleet.succeed(load, with: .hour("second"))
        #expect(caller.value?.value == "second")
        store.isDown = false
        fleet.advance(by: .seconds(1))
        #expect(fleet.record?.token?.value == "second")
        #expect(fleet.record?.mark == nil)
    }

    @Test func `the next flight's own mark is not taken back`() throws {
        let fleet = fleet()
        store.next(.fails, .fails)
        _ = fleet.call(0)
        _ = fleet.call(0)
        let load = try fleet.load(0)
        fleet.advance(by: .seconds(10))
        #expect(fleet.record?.mark != nil)
        fleet.succeed(load, with: .granted("second"))
        #expect(fleet.record?.token?.value == "second")
    }

    @Test func `taking back a mark doesn't restore the mark of an earlier load that has ended`() throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.call(0)
        let late = try fleet.load(0)
        fleet.advance(by: .seconds(30))
        // The next load begins while the first still runs, and finds its mark.
        store.hold()
        let caller = fleet.call(0)
        store.next(.fails, .isLate)
        fleet.fail(late, with: ScriptedFailure.grantRefused)
        store.release()
        store.hold()
        fleet.stage.run()
        // The first load has ended. The outcome of the second one's mark is unknown.
        store.isDown = true
        store.release()
        fleet.stage.run()
        let load = try fleet.load(0)
        store.isDown = false
        fleet.succeed(load, with: .hour("second"))
        #expect(caller.value?.value == "second")
        fleet.advance(by: .seconds(1))
        #expect(fleet.record?.mark == nil)
    }
}

@Suite("A flight that ends with a mark")
struct StrayMarkOfAFlightTests {
    private let record = GrantRecord(write: "w", generation: 3, token: .granted("old"), received: -1e9)
    private let moment = SharedFlight.Moment(now: .zero, wall: 1_000)
    private func seen(_ record: GrantRecord, _ revision: String) -> SharedFlight.Sighting {
        .init(record: record, revision: .init(revision))
    }

    @Test func `an abandoned flight whose mark has just been written sends nothing and takes it back`() throws {
        var flight = SharedFlight(.init(owner: "me"))
        let mark = try #require(flight.next(.read(seen(record, "1")), at: moment).written)
        let late = SharedFlight.Moment(now: .zero, wall: 1_000, isAbandoned: true)
        guard case .end(let ending) = flight.next(.swapped(.init("2")), at: late) else {
            Issue.record("it goes on")
            return
        }
        #expect(ending.outcome == .gaveUp)
        let remedy = try #require(ending.stray?.remedy(for: seen(mark, "2"))?.written)
        #expect(remedy.mark == nil && remedy.token == record.token)
        #expect(ending.stray?.remedy(for: seen(record, "3")) == nil)
    }

    @Test func `a load that was given up before it began takes its mark back, and doesn't count as a failure`() throws {
        var flight = SharedFlight(.init(owner: "me"))
        _ = flight.next(.read(seen(record, "1")), at: moment)
        _ = flight.next(.swapped(.init("2")), at: moment)
        guard case .end(let ending) = flight.next(.failed(FlightFailure(wrapping: NotSent())), at: moment) else {
            Issue.record("it goes on")
            return
        }
        #expect(ending.stray?.record.trouble == nil && ending.stray?.record.mark == nil && ending.stray != nil)
    }
}
