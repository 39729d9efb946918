import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Services that share one grant, and look at it at intervals")
struct CheckedFleetTests {
    private func checked(_ store: OddSharedStore = OddSharedStore(), count: Int = 2) -> Fleet {
        let fleet = Fleet(count, sharing: TokenSharing(checkEvery: .seconds(10)), store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        for index in 1..<count { _ = fleet.call(index) }
        return fleet
    }

    @Test func `34: a sign-out elsewhere ends the session an interval later, at a caller's first hit`() throws {
        let fleet = checked()
        let events = Log<String>()
        fleet.stage.start { [service = fleet.services[1]] in
            for await event in service.events() { events.append("\(event.name)") }
        }
        _ = fleet.signOut(0)
        fleet.advance(by: .milliseconds(9_999))
        #expect(fleet.call(1).value?.value == "first")
        #expect(fleet.services[1].cachedToken != nil, "it isn't time to look")
        fleet.advance(by: .milliseconds(1))
        #expect(fleet.call(1).value?.value == "first", "the caller doesn't wait for the look")
        #expect(fleet.services[1].cachedToken == nil)
        #expect(events.entries == ["reset"])
        _ = fleet.call(1)
        #expect(try fleet.load(1).previous == nil)
    }

    @Test func `hits during a look start no other look, and get their token at once`() {
        let store = OddSharedStore()
        let fleet = checked(store)
        let before = store.log.entries.count
        fleet.advance(by: .seconds(10))
        store.hold()
        for _ in 0..<100 { #expect(fleet.call(1).value?.value == "first") }
        #expect(Array(store.log.entries.dropFirst(before)) == ["load"])
        store.release()
        fleet.stage.run()
        for _ in 0..<100 { #expect(fleet.call(1).value?.value == "first") }
        #expect(store.log.entries.count == before + 1, "the next look comes an interval later")
        fleet.advance(by: .seconds(10))
        _ = fleet.call(1)
        #expect(store.log.entries.count == before + 2)
        #expect(fleet.loaders.map(\.loadCount) == [0, 0])
    }

    @Test func `a service without callers doesn't look`() {
        let store = OddSharedStore()
        let fleet = checked(store)
        let before = store.log.entries.count
        fleet.advance(by: .seconds(2_000))
        #expect(store.log.entries.count == before)
    }

    @Test func `without an interval a hit never looks`() {
        let store = OddSharedStore()
        let fleet = Fleet(1, store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        let before = store.log.entries.count
        for _ in 0..<26 {
            fleet.advance(by: .seconds(100))
            #expect(fleet.call(0).value?.value == "first")
        }
        #expect(store.log.entries.count == before)
    }

    @Test func `35: a look adopts a later token`() {
        let fleet = checked()
        _ = fleet.signIn(0, with: .granted("second"))
        fleet.advance(by: .seconds(10))
        #expect(fleet.call(1).value?.value == "first")
        #expect(fleet.call(1).value?.value == "second")
        #expect(fleet.loaders.map(\.loadCount) == [0, 0])
    }

    @Test func `a look that fails changes nothing, and the next one comes an interval later`() {
        let store = OddSharedStore()
        let fleet = checked(store)
        _ = fleet.signOut(0)
        let before = store.log.entries.count
        store.isDown = true
        for second in 1...30 {
            fleet.advance(by: .seconds(1))
            #expect(fleet.call(1).value?.value == "first", "\(second) s")
        }
        #expect(store.log.entries.count == before + 3)
        store.isDown = false
        fleet.advance(by: .seconds(10))
        _ = fleet.call(1)
        #expect(fleet.services[1].cachedToken == nil)
    }

    @Test func `looks don't make the refresh start earlier`() throws {
        let fleet = checked(count: 1)
        for _ in 0..<260 {
            fleet.advance(by: .seconds(10))
            #expect(fleet.call(0).value?.value == "first")
        }
        #expect(fleet.loaders[0].loadCount == 0, "the soft window begins after 2,640 s")
        fleet.advance(by: .seconds(200))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }

    @Test func `callers whose token expires during a look wait for it, and then for a load`() throws {
        let store = OddSharedStore()
        let fleet = checked(store)
        fleet.advance(by: .seconds(2_600))
        store.hold()
        #expect(fleet.call(1).value?.value == "first")
        let held = AccessToken.granted("first")
        fleet.stage.start { [service = fleet.services[1]] in await service.invalidate(held) }
        let caller = fleet.call(1)
        #expect(!caller.isDone)
        store.release()
        fleet.stage.run()
        fleet.succeed(try fleet.load(1), with: .granted("second"))
        #expect(caller.value?.value == "second")
    }

    @Test func `a look first writes a sign-in that the store has missed`() {
        let store = OddSharedStore()
        let fleet = checked(store)
        store.isDown = true
        #expect(fleet.signIn(0, with: .granted("second"))?.storeFailure != nil)
        store.isDown = false
        fleet.advance(by: .seconds(10))
        #expect(fleet.call(0).value?.value == "second")
        #expect(fleet.record?.token?.value == "second")
    }
}
