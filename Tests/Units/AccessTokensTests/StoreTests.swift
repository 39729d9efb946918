import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("The store: saved before published, one order, restored at the first miss")
struct StoreTests {
    private static func stored(_ name: String, age: Double, lifetime: Int = 3_600) -> StoredToken {
        let token = AccessToken(name, lifetime: .seconds(lifetime), refreshToken: "\(name)'s grant")
        return StoredToken(token, received: Date(timeIntervalSince1970: -age))
    }

    // Museum 19: a rotated refresh token is thrown away (Auth0.swift returned before the store; KTOR-8285).
    @Test func `a token is saved before any caller gets it`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        let waiting = scene.calls(2)
        store.hold()
        try scene.deliver(.hour("a"))
        #expect(!waiting.contains { $0.isDone } && scene.service.cachedToken == nil)
        let late = scene.call()
        scene.release(store)
        #expect((waiting + [late]).allSatisfy { $0.value?.value == "a" })
        #expect(store.contents?.value == "a" && scene.loader.loadCount == 1)
    }

    @Test(arguments: [0, 3_600])
    func `a rotated refresh token is saved whatever is wrong with its access token`(lifetime: Int) throws {
        let store = ScriptedStore(), scene = Scene(store: store), caller = scene.call()
        if lifetime > 0 { scene.invalidate(.hour("a")) }
        try scene.deliver(AccessToken("a", lifetime: .seconds(lifetime), refreshToken: "rotated"))
        #expect(caller.code == (lifetime > 0 ? nil : .tokenExpiredOnArrival) && scene.service.cachedToken == nil)
        #expect(store.contents?.refreshToken == "rotated")
    }

    @Test(arguments: [0.0, 1_000, 3_539, -1_000_000, -1e30])
    func `the first miss restores a token that is still good, and no load starts`(age: Double) throws {
        let scene = Scene(store: ScriptedStore(Self.stored("a", age: age)))
        #expect(scene.service.cachedToken == nil)
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 0)
        // After the wall clock was moved, a token's age is at most its lifetime and at least zero.
        scene.advance(by: .seconds(3_540))
        #expect(scene.service.cachedToken == nil)
    }

    @Test(arguments: [3_540.0, 3_600, 1e18])
    func `an expired token is restored as a grant`(age: Double) throws {
        let scene = Scene(store: ScriptedStore(Self.stored("a", age: age)))
        let caller = scene.call()
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "a's grant")
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `an empty store is read once, and then the loader is called`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        let caller = scene.call()
        #expect(try scene.load().previous == nil)
        #expect(store.log == ["load"] && !caller.isDone)
    }

    // Museum 29, at its worst: a locked keychain treated as a sign-out.
    @Test func `a locked store isn't treated as empty: it causes a transient error, no load, and another try`() throws {
        let store = ScriptedStore(Self.stored("a", age: 0)), scene = Scene(store: store)
        store.fail(.load)
        #expect(scene.call().code == .storeFailed)
        #expect(scene.call().code == .storeFailed)
        #expect(scene.loader.loadCount == 0)
        store.fail()
        scene.advance(by: .seconds(2))
        #expect(scene.call().value?.value == "a")
    }

    @Test
    func `a store that never answers causes an error that names it after 5 s, and later callers don't wait`()
        throws
    {
        let store = ScriptedStore(Self.stored("a", age: 0)), scene = Scene(store: store)
        store.hold()
        let caller = scene.call()
        scene.advance(by: .seconds(5) - .milliseconds(1))
        #expect(!caller.isDone)
        scene.advance(by: .milliseconds(1))
        #expect(caller.code == .storeFailed)
        #expect(caller.error.map { "\($0)" }?.contains("The store did not answer within 5.0 seconds") == true)
        for _ in 0..<3 { #expect(scene.call().code == .storeFailed) }
        #expect(scene.loader.loadCount == 0 && store.log == ["load"])
        scene.release(store)
        #expect(scene.call().value?.value == "a", "late, but not lost")
    }

    // Museum 7 and 24, on disk.
    @Test(arguments: [true, false])
    func `a sign-out during a save has the last word`(hasBegun: Bool) async throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        let caller = scene.call()
        let load = try scene.load()
        store.hold()
        if hasBegun { scene.succeed(load, with: .hour("a")) } else { load.succeed(with: .hour("a")) }
        let signOut = scene.signOut()
        #expect(caller.code == .reset || !hasBegun)
        #expect(!signOut.isDone && scene.service.cachedToken == nil)
        scene.release(store)
        #expect(signOut.value?.discarded.first?.value == "a" || !hasBegun)
        #expect(store.contents == nil && store.log.last == "remove")
        #expect(scene.service.cachedToken == nil)
    }

    @Test func `a token signed out while its save waited is not written at all`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        scene.replace(with: .hour("a"))
        scene.replace(with: .hour("b"))
        scene.reset()
        scene.release(store)
        #expect(store.log == ["load", "save a", "load", "remove"])
    }

    @Test(arguments: [true, false])
    func `a sign-out whose removal fails or hangs returns the error and the dropped token, and still takes effect`(hangs: Bool)
        throws
    {
        let store = ScriptedStore(), scene = Scene(store: store)
        _ = scene.call()
        try scene.deliver(AccessToken("a", lifetime: .seconds(60), refreshToken: "r"))
        if hangs { store.hold() } else { store.fail(.remove) }
        let signOut = scene.signOut()
        scene.advance(by: .seconds(5))
        #expect(signOut.value?.storeFailure?.code == .storeFailed)
        #expect(signOut.value?.discarded.map(\.refreshToken) == ["r"])
        #expect(scene.service.cachedToken == nil)
        _ = scene.call()
        #expect(try scene.load().previous == nil, "and does not restore what could not be removed")
    }

    @Test(arguments: [true, false])
    func `a save that fails or takes too long sends an event, and the callers still get the token`(hangs: Bool) throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        let events = scene.service.events()
        let caller = scene.call()
        if hangs { store.hold() } else { store.fail(.save) }
        try scene.deliver(.hour("a"))
        if hangs { scene.advance(by: .seconds(5)) }
        #expect(caller.value?.value == "a")
        #expect(scene.told(by: events).map(\.name) == [.loadStarted, .storeFailed, .loadSucceeded])
        #expect(scene.call().value?.value == "a")
    }

    @Test func `replace saves before it publishes, and discards a restore that is under way`() throws {
        let store = ScriptedStore(Self.stored("old", age: 0)), scene = Scene(store: store)
        store.hold()
        let waiting = scene.call()
        let signIn = scene.signIn(with: .hour("new"))
        #expect(!waiting.isDone && !signIn.isDone)
        scene.release(store)
        #expect(waiting.value?.value == "new" && signIn.isDone)
        #expect(store.contents?.value == "new" && scene.call().value?.value == "new")
        #expect(scene.loader.loadCount == 0)
    }

    @Test(arguments: [true, false])
    func `after a sign-out or a sign-in, nothing from before it is restored`(byReset: Bool) throws {
        let store = ScriptedStore(Self.stored("old", age: 0)), scene = Scene(store: store)
        store.fail(.remove, .save)
        if byReset { scene.reset() } else { scene.replace(with: AccessToken("x", lifetime: .seconds(1))) }
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        try scene.deliver(.hour("new"))
        #expect(caller.value?.value == "new")
        // The store is still read once, for the grant that has to be revoked.
        let write = byReset ? "remove" : "save x"
        #expect(store.log == ["load", write, write, "save new"], "what failed is repeated, without another read")
    }

    @Test func `an expired replacement is saved as the grant it is`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        scene.replace(with: AccessToken("x", lifetime: .zero, refreshToken: "grant"))
        #expect(store.contents?.refreshToken == "grant")
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "grant")
    }

    @Test func `no caller's cancellation reaches the store`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let caller = scene.call()
        caller.cancel()
        scene.stage.run()
        #expect(caller.isCancelledWithError)
        scene.release(store)
        #expect(scene.loader.loadCount == 0, "no caller waits any longer, so nothing is loaded")
        let next = scene.call()
        try scene.deliver(.hour("a"))
        #expect(next.value?.value == "a" && store.log == ["load", "save a"])
    }

    @Test func `in memory, a service finds what an earlier one left`() throws {
        let store = InMemoryTokenStore()
        let first = Scene(store: store)
        _ = first.call()
        try first.deliver(.hour("a"))
        let second = Scene(store: store)
        #expect(second.call().value?.value == "a")
        second.reset()
        #expect(store.contents == nil)
    }

    @Test func `nothing is left running, and no timer, after store operations`() throws {
        let store = ScriptedStore()
        weak let watched = try {
            let scene = Scene(store: store)
            _ = scene.call()
            try scene.deliver(.hour("a"))
            scene.reset()
            #expect(scene.clock.sleeperCount == 0)
            return scene.service
        }()
        #expect(watched == nil)
    }

    @Test func `a save has a limit of its own, not what is left of the load's`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        let caller = scene.call()
        let load = try scene.load()
        scene.advance(by: .seconds(28))
        store.hold()
        scene.succeed(load, with: .hour("a"))
        scene.advance(by: .seconds(4))
        // Each call compares the deadlines with the time.
        let late = scene.call()
        #expect(!caller.isDone && !late.isDone)
        scene.release(store)
        #expect(caller.value?.value == "a" && late.value?.value == "a")
    }

    @Test func `a saved token's life counts from its load's start, in the next run too`() throws {
        let store = ScriptedStore(), first = Scene(store: store), second = Scene(store: store)
        _ = first.call()
        let load = try first.load()
        first.advance(by: .seconds(20))
        first.succeed(load, with: .hour("a"))
        second.advance(by: .seconds(3_540))
        _ = second.call()
        #expect(second.loader.loadCount == 1)
    }

    @Test func `a refused token is not restored, but its grant is`() throws {
        let scene = Scene(store: ScriptedStore(Self.stored("a", age: 0)))
        scene.invalidate(.hour("a"))
        let caller = scene.call()
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "a's grant")
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `a saved replacement does not count as a load`() {
        let scene = Scene(store: ScriptedStore()), events = scene.service.events()
        scene.replace(with: .hour("a"))
        #expect(scene.service.cachedToken?.value == "a")
        #expect(scene.told(by: events).map(\.name) == [.replaced])
    }

    @Test(arguments: [true, false])
    func `a late restore is used, and a late failure of a restore sends no event`(fails: Bool) {
        let store = ScriptedStore(Self.stored("a", age: 0)), scene = Scene(store: store)
        store.hold()
        _ = scene.call()
        scene.advance(by: .seconds(5))
        let events = scene.service.events()
        if fails { store.fail(.load) }
        scene.release(store)
        #expect(scene.service.cachedToken?.value == (fails ? nil : "a"))
        #expect(scene.told(by: events).map(\.name) == (fails ? [] : [.restored]))
    }

    @Test func `restores for callers from before a fence aren't counted as loads`() {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        for _ in 1...3 {
            _ = scene.call()
            scene.advance(by: .seconds(30))
            scene.advance(by: .seconds(5))
        }
        scene.reset()
        _ = scene.call()
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `a failing removal, and a failing save that no caller waits for, are events`() {
        let store = ScriptedStore(), scene = Scene(store: store), events = scene.service.events()
        store.fail(.save, .remove)
        scene.replace(with: AccessToken("x", lifetime: .zero))
        scene.reset()
        #expect(scene.told(by: events).map(\.name) == [.replaced, .loadStarted, .storeFailed, .reset, .storeFailed])
    }

    @Test(arguments: 0..<12)
    func `a save's limit can't pass once the save has ended, however close they were`(steps: Int) {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let signIn = scene.stage.start { [service = scene.service] in
            await service.replace(with: AccessToken("x", lifetime: .zero))
            return service.events()
        }
        store.release()
        for _ in 0..<steps { scene.stage.runOnce() }
        scene.advance(by: .seconds(5))
        let told = signIn.value.map { scene.told(by: $0) }
        #expect(told?.contains { $0.name == .storeFailed } == false)
    }
}
