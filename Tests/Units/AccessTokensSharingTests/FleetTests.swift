import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Services that share one grant")
struct FleetTests {
    @Test func `one service loads, and the others adopt its token`() throws {
        let fleet = Fleet(3)
        _ = fleet.signIn(0, with: .granted("first"))
        #expect(fleet.call(1).value?.value == "first")
        fleet.advance(by: .seconds(3550))
        let one = fleet.call(0), two = fleet.call(1), three = fleet.call(2)
        let load = try fleet.load(0)
        #expect(load.previous?.refreshToken == "first's grant")
        #expect(!one.isDone && !two.isDone && !three.isDone)
        #expect(fleet.loaders[1].loadCount == 0)
        fleet.succeed(load, with: .granted("second"))
        #expect([one, two, three].map(\.value?.value) == ["second", "second", "second"])
        #expect(fleet.loaders.map(\.loadCount) == [1, 0, 0])
    }

    @Test func `the refresh token presented is the record's, not the one in memory`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        _ = fleet.call(1)
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        fleet.advance(by: .seconds(3550))
        // The other service still remembers the first.
        _ = fleet.call(1)
        #expect(try fleet.load(1).previous?.refreshToken == "second's grant")
    }

    @Test func `a token is saved before any caller gets it`() throws {
        let fleet = Fleet()
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        #expect(fleet.record?.mark != nil, "the mark stands before the request")
        #expect(fleet.record?.token == nil)
        fleet.succeed(load, with: .granted("first"))
        #expect(caller.value?.value == "first")
        #expect(fleet.record?.token?.value == "first")
        #expect(fleet.record?.mark == nil)
    }

    @Test func `an adopted token's age is taken from the record`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3000))
        #expect(fleet.call(1).value?.value == "first")
        fleet.advance(by: .seconds(550))
        #expect(fleet.services[1].cachedToken == nil)
    }

    @Test func `a sign-out by one ends the session of all, and no late save brings a token back`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        _ = fleet.call(1)
        fleet.advance(by: .seconds(3550))
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        let change = fleet.signOut(1)
        #expect(change?.storeFailure == nil)
        #expect(fleet.record?.isTombstone == true)
        fleet.succeed(load, with: .granted("late"))
        #expect(caller.code == .reset)
        #expect(fleet.record?.isTombstone == true)
        #expect(fleet.discarded.entries.contains("late signedOut"))
    }

    @Test(arguments: [true, false])
    func `a sign-out during the service's own load is written, whatever the load brings`(succeeds: Bool) throws {
        let fleet = Fleet(1)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        let load = try fleet.load(0)
        let change = fleet.signOut(0)
        #expect(change?.storeFailure == nil)
        if succeeds { fleet.succeed(load, with: .granted("late")) } else { fleet.fail(load) }
        #expect(fleet.record?.isTombstone == true)
        #expect(fleet.discarded.entries.contains("late signedOut") == succeeds)
        let next = fleet.call(0)
        let login = try fleet.load(0)
        #expect(login.previous == nil)
        fleet.succeed(login, with: .granted("again"))
        #expect(next.value?.value == "again")
        #expect(fleet.record?.token?.value == "again")
    }

    @Test func `a sign-in during slow loads is written, and stays when they end`() throws {
        let fleet = Fleet(1)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        let slow = try fleet.load(0)
        _ = fleet.signOut(0)
        _ = fleet.call(0)
        let login = try fleet.load(0)
        fleet.fail(slow)
        let change = fleet.signIn(0, with: .granted("second"))
        #expect(change?.storeFailure == nil)
        #expect(fleet.record?.token?.value == "second")
        fleet.succeed(login, with: .granted("late"))
        #expect(fleet.record?.token?.value == "second")
    }

    @Test func `a service learns of a sign-out at its next read, and its callers get the reset error`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        _ = fleet.call(1)
        _ = fleet.signOut(0)
        fleet.advance(by: .seconds(3000))
        #expect(fleet.call(1).value?.value == "first", "no caller waits for the check in the soft window")
        #expect(fleet.services[1].cachedToken == nil)
    }

    @Test func `a sign-out hands over a token that only the record has`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        let change = fleet.signOut(1)
        #expect(change?.discarded.map(\.value) == ["first"])
        #expect(fleet.call(1).isDone == false)
        #expect(try fleet.load(1).previous == nil)
    }

    @Test func `a token that memory and record both have is handed over once`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        _ = fleet.call(1)
        #expect(fleet.signOut(1)?.discarded.map(\.value) == ["first"])
        #expect(fleet.discarded.entries == ["first signedOut"])
    }

    @Test func `a sign-in elsewhere is adopted`() throws {
        let fleet = Fleet()
        _ = fleet.signOut(0)
        _ = fleet.signIn(1, with: .granted("first"))
        #expect(fleet.call(0).value?.value == "first")
        #expect(fleet.loaders[0].loadCount == 0)
    }

    @Test func `in the soft window another service's mark ends a refresh attempt silently`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        _ = fleet.call(1)
        fleet.advance(by: .seconds(2800))
        #expect(fleet.call(0).value?.value == "first")
        let load = try fleet.load(0)
        #expect(fleet.call(1).value?.value == "first")
        #expect(fleet.loaders[1].loadCount == 0)
        fleet.succeed(load, with: .granted("second"))
        fleet.advance(by: .seconds(31))
        _ = fleet.call(1)
        #expect(fleet.services[1].cachedToken?.value == "second")
    }

    @Test func `a silent holder's mark is respected until the doubt has passed, and then the token is presented again`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        _ = try fleet.load(0)
        // Its answer never arrives.
        for _ in 0..<3 {
            _ = fleet.call(1)
            fleet.advance(by: .seconds(35))
        }
        #expect(fleet.loaders[1].loadCount == 0)
        fleet.advance(by: .seconds(60))
        _ = fleet.call(1)
        #expect(fleet.loaders[1].loadCount == 0)
        fleet.advance(by: .seconds(9))
        #expect(try fleet.load(1).previous?.refreshToken == "first's grant")
    }

    @Test(arguments: [130, 1_000])
    func `30: after an outage longer than the doubt the new token is saved, and the old one isn't presented again`(outage: Int)
        throws
    {
        let store = OddSharedStore()
        let fleet = Fleet(store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        let load = try fleet.load(0)
        // The second service sees the mark.
        _ = fleet.call(1)
        store.isDown = true
        fleet.succeed(load, with: .granted("second"))
        fleet.advance(by: .seconds(outage))
        store.isDown = false
        let caller = fleet.call(1)
        fleet.advance(by: .seconds(4))
        #expect(caller.value?.value == "second")
        #expect(fleet.loaders[1].loadCount == 0)
        #expect(fleet.record?.token?.value == "second" && fleet.record?.mark == nil)
    }

    @Test func `a refused grant counts for the whole fleet, until retryNow`() throws {
        let fleet = Fleet(3)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        for index in 0...1 {
            let caller = fleet.call(index)
            fleet.fail(try fleet.load(index), with: ScriptedFailure.grantRefused)
            #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
        }
        let third = fleet.call(2)
        #expect((third.error as? TokenServiceError)?.remedy == .signIn)
        #expect(fleet.loaders[2].loadCount == 0)
        #expect(fleet.record?.token != nil, "a failure clears nothing")
        fleet.stage.start { [service = fleet.services[2]] in await service.retryNow() }
        _ = fleet.call(2)
        #expect(try fleet.load(2).previous?.refreshToken == "first's grant")
    }

    @Test func `after a failure that saved a new refresh token, the pause is the longest`() throws {
        let fleet = Fleet()
        let caller = fleet.call(0)
        let grant = AccessToken("", lifetime: .zero, refreshToken: "new")
        fleet.fail(try fleet.load(0), with: SalvagedGrant(grant, reason: ScriptedFailure.transient))
        #expect(caller.code == .loadFailed && fleet.record?.token?.refreshToken == "new")
        fleet.advance(by: .seconds(59))
        _ = fleet.call(0)
        #expect(fleet.loaders[0].loadCount == 1)
        fleet.advance(by: .seconds(1))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "new")
    }

    @Test func `a hit reads only memory`() throws {
        let counter = CountingStore()
        let fleet = Fleet(1, store: { counter.over($0) })
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("first"))
        #expect(caller.value?.value == "first")
        #expect(counter.log.entries == ["load", "swap", "swap"])
        for _ in 0..<100 { #expect(fleet.call(0).value != nil) }
        #expect(counter.log.entries.count == 3)
    }
}

/// Counts a store's operations.
final class CountingStore: Sendable {
    let log = Log<String>()

    func over(_ store: InMemorySharedTokenStore) -> any SharedTokenStore { Counted(store: store, log: log) }

    private struct Counted: SharedTokenStore {
        let store: InMemorySharedTokenStore
        let log: Log<String>

        @concurrent func load() async throws -> SharedRecord? {
            log.append("load")
            return await store.load()
        }

        @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
            log.append("swap")
            return await store.swap(bytes, ifAt: revision)
        }
    }

    @Test func `the record tells whether a user is signed in, without a load`() throws {
        let fleet = Fleet()
        func ask(_ index: Int) -> SignInState.Code? {
            fleet.stage.start { [service = fleet.services[index]] in await service.signInState() }.value?.code
        }
        #expect(ask(0) == .signedOut && ask(1) == .signedOut)
        _ = fleet.signIn(0, with: .granted("first"))
        #expect(ask(0) == .validToken && ask(1) == .validToken)
        #expect(fleet.services[1].cachedToken == nil && fleet.services[1].cachedSignInState.code == .unknown)
        fleet.advance(by: .seconds(3_600))
        #expect(ask(0) == .signedIn && ask(1) == .signedIn)
        _ = fleet.signOut(1)
        #expect(ask(0) == .signedOut && ask(1) == .signedOut)
        #expect(fleet.loaders.map(\.loadCount) == [0, 0])
    }

    @Test func `while a shared store is down the sign-in state is unknown, except after a sign-out here`() throws {
        let clock = ManualClock(), store = SimulatedSharedStore(clock: clock), fleet = Fleet(store: { _ in store })
        func ask() -> SignInState? {
            fleet.stage.start { [service = fleet.services[0]] in await service.signInState() }.value
        }
        _ = fleet.signIn(1, with: .granted("first"))
        store.isReachable = false
        #expect(ask()?.code == .unknown && ask()?.error?.code == .storeFailed)
        _ = fleet.signOut(0)
        #expect(ask()?.code == .signedOut)
    }
}
