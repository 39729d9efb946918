import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Services that share one grant, and pause")
struct PausedFleetTests {
    /// Two services whose token has expired; the server has told the first to wait.
    private func paused(_ store: OddSharedStore = OddSharedStore()) throws -> Fleet {
        let fleet = Fleet(store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure(retryAfter: .seconds(600)))
        return fleet
    }

    @Test func `29: a pausing service adopts a younger token that another service has saved`() throws {
        let fleet = try paused()
        #expect(fleet.call(0).code == .loadFailed)
        _ = fleet.stage.start { [service = fleet.services[1]] in await service.retryNow() }
        let other = fleet.call(1)
        fleet.succeed(try fleet.load(1), with: .granted("second"))
        #expect(other.value?.value == "second")
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).value?.value == "second")
        #expect(fleet.loaders[0].loadCount == 1)
    }

    @Test func `35: a service whose grant was refused adopts a sign-in elsewhere`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure.grantRefused)
        #expect((fleet.call(0).error as? TokenServiceError)?.remedy == .signIn)
        _ = fleet.signIn(1, with: .granted("second"))
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).value?.value == "second")
        #expect(fleet.call(0).value?.value == "second", "the gate is open again")
    }

    @Test func `35: a sign-in elsewhere whose access token has expired is used as a grant`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure.grantRefused)
        _ = fleet.signIn(1, with: .granted("second"))
        fleet.advance(by: .seconds(3595))
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        #expect(load.previous?.refreshToken == "second's grant")
        fleet.succeed(load, with: .granted("third"))
        #expect(caller.value?.value == "third")
    }

    @Test func `34: a service that pauses learns of a sign-out elsewhere`() throws {
        let fleet = try paused()
        _ = fleet.signOut(1)
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).code == .reset)
    }

    @Test func `a pause holds while looks find nothing, and the store is read at most once a second`() throws {
        let store = OddSharedStore()
        let fleet = try paused(store)
        let before = store.log.entries.count
        for _ in 0..<100 {
            #expect(fleet.call(0).code == .loadFailed)
            fleet.advance(by: .milliseconds(100))
        }
        #expect(store.log.entries.count - before == 10)
        #expect(Set(store.log.entries.dropFirst(before)) == ["load"])
        #expect(fleet.loaders[0].loadCount == 1)
        fleet.advance(by: .seconds(600))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }

    @Test func `a look that the store doesn't answer ends with the pause's error, and counts as no failure`() throws {
        let store = OddSharedStore()
        let fleet = try paused(store)
        store.isDown = true
        #expect(fleet.call(0).code == .loadFailed)
        store.isDown = false
        fleet.advance(by: .seconds(601))
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        #expect(caller.value?.value == "second")
    }

    @Test func `callers that come during a look wait for it, and a load after retryNow begins after it`() throws {
        let store = OddSharedStore()
        let fleet = try paused(store)
        store.hold()
        let callers = (0..<3).map { _ in fleet.call(0) }
        #expect(callers.allSatisfy { !$0.isDone })
        store.release()
        fleet.stage.run()
        #expect(callers.map(\.code) == [.loadFailed, .loadFailed, .loadFailed])
        fleet.advance(by: .seconds(1))
        store.hold()
        let caller = fleet.call(0)
        fleet.stage.start { [service = fleet.services[0]] in await service.retryNow() }
        store.release()
        fleet.stage.run()
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        #expect(caller.value?.value == "second")
    }

    /// Lets the first service's load fail, with the server's time to retry, and expects that the second service waits, too: it
    /// has no new attempt left.
    private func expectsPause(of fleet: Fleet) throws {
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure(retryAfter: .seconds(600)))
        #expect(fleet.call(1).code == .loadFailed)
        #expect(fleet.loaders[1].loadCount == 0)
    }

    @Test(arguments: [true, false])
    func `an attempt of retryNow ends with a sign-in, and the fleet's next failure counts`(signsOut: Bool) throws {
        let fleet = try paused()
        _ = fleet.call(1)
        fleet.stage.start { [service = fleet.services[1]] in await service.retryNow() }
        if signsOut { _ = fleet.signOut(1) }
        _ = fleet.signIn(1, with: .granted("second"))
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).code == (signsOut ? .reset : nil))
        try expectsPause(of: fleet)
    }

    @Test func `an attempt of retryNow ends with the token that a look finds, and the fleet's next failure counts`() throws {
        let store = OddSharedStore()
        let fleet = Fleet(store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(1)
        fleet.fail(try fleet.load(1), with: ScriptedFailure.grantRefused)
        _ = fleet.signIn(0, with: .granted("second"))
        fleet.advance(by: .seconds(1))
        store.hold()
        let caller = fleet.call(1)
        fleet.stage.start { [service = fleet.services[1]] in await service.retryNow() }
        store.release()
        fleet.stage.run()
        #expect(caller.value?.value == "second")
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure(retryAfter: .seconds(600)))
        #expect(fleet.call(1).code == .loadFailed)
        #expect(fleet.loaders[1].loadCount == 1)
    }
}
