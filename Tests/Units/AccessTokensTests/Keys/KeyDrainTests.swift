import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 45: a program with many keys can finish")
struct KeyDrainTests {
    private static func drain(_ scene: KeyScene, within limit: Duration = .seconds(10)) -> Stage.Player<Bool> {
        scene.stage.start { [services = scene.services] in await services.drain(within: limit).isComplete }
    }

    @Test func `45: drain waits for every key's load, and no key loads afterwards, even with a service made later`() throws {
        let scene = KeyScene()
        _ = scene.call("a")
        _ = scene.call("b")
        let end = Self.drain(scene)
        try scene.succeed("a", with: .hour("a"))
        #expect(!end.isDone)
        try scene.succeed("b", with: .hour("b"))
        #expect(end.value == true)
        #expect(scene.call("a").value?.value == "a")
        #expect(scene.call("c").code == .drained && scene.loadCount("c") == 0)
        _ = scene.stage.start { [services = scene.services] in await services.resume() }
        _ = scene.call("c")
        _ = scene.call("d")
        #expect(scene.loadCount("c") == 1 && scene.loadCount("d") == 1)
    }

    @Test func `45: one limit holds for the drain of all keys`() throws {
        let scene = KeyScene()
        for key in ["a", "b", "c"] { _ = scene.call(key) }
        let end = Self.drain(scene, within: .seconds(10))
        scene.advance(by: .seconds(10))
        #expect(end.value == false)
    }

    @Test func `45: drain waits until keys that share a refresh token have saved it`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1")
        let end = Self.drain(scene)
        let store = try #require(scene.stores?["a"])
        store.hold()
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        #expect(!end.isDone)
        store.release()
        scene.stage.run()
        #expect(end.value == true && store.contents?.refreshToken == "r2")
    }

    @Test(arguments: [true, false])
    func `45: during a drain, a load that waits for another key's begins only if a caller waits for it`(isAwaited: Bool) throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1"), caller = scene.call("a2")
        if !isAwaited {
            caller.cancel()
            scene.stage.run()
        }
        let end = Self.drain(scene)
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        #expect(scene.loadCount("a2") == (isAwaited ? 1 : 0))
        if isAwaited { try scene.succeed("a2", with: .granted("a2 1", by: "r3")) }
        #expect(end.value == true)
        guard !isAwaited else { return }
        #expect(scene.call("a2").code == .drained)
        _ = scene.stage.start { [services = scene.services] in await services.resume() }
        _ = scene.call("a2")
        #expect(try scene.load("a2").previous?.refreshToken == "r2")
    }

    @Test func `19: a load that every caller has left and that never begins sends the event loadDropped`() throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        let load = try scene.load("a1"), log = Log<String>()
        let reader = scene.stage.start { [service = scene.services["a2"]] in
            for await event in service.events() { log.append("\(event.name) \(event.load ?? 0)") }
        }
        let caller = scene.call("a2")
        caller.cancel()
        _ = Self.drain(scene)
        scene.succeed(load, with: .granted("a1 2", by: "r2"))
        reader.cancel()
        scene.stage.run()
        #expect(log.entries == ["loadStarted 1", "loadDropped 1"])
    }

    @Test func `45: drain waits for a sign-in's save in the store that keys share, even if no caller awaits it`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let store = try #require(scene.stores?["a"])
        store.hold()
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        let end = Self.drain(scene)
        #expect(!end.isDone)
        store.release()
        scene.stage.run()
        #expect(end.value == true && store.contents?.refreshToken == "r1")
    }

    @Test func `50: drain names the refresh token that the keys' shared store refused`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let store = try #require(scene.stores?["a"])
        store.fail(.save)
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        let end = scene.stage.start { [services = scene.services] in await services.drain(within: .seconds(10)) }
        scene.advance(by: .seconds(10))
        let result = try #require(end.value)
        #expect(result.hasEnded && result.unsaved.map(\.token?.refreshToken) == ["r1"])
        #expect(result.unsaved.map(\.token?.value) == [""], "the grant alone")
    }

    /// Returns services of keys that share a refresh token, and the store that has refused it.
    private func refused() throws -> (KeyScene, ScriptedStore) {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let store = try #require(scene.stores?["a"])
        store.fail(.save)
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        #expect(store.log.last == "save -")
        return (scene, store)
    }

    @Test func `50: a key's drain saves the refresh token that the store of several keys refused, at once`() throws {
        let (scene, store) = try refused()
        store.fail()
        let end = scene.stage.start { [service = scene.services["a2"]] in await service.drain(within: .seconds(10)) }
        #expect(end.value?.isComplete == true && store.contents?.refreshToken == "r1")
    }

    @Test func `50: a key's drain names the refresh token that the store of several keys refuses`() throws {
        let (scene, _) = try refused()
        let end = scene.stage.start { [service = scene.services["a2"]] in await service.drain(within: .seconds(10)) }
        scene.advance(by: .seconds(10))
        #expect(try #require(end.value).unsaved.map(\.token?.refreshToken) == ["r1"])
    }

    @Test(arguments: ["a1", "a2"]) func `50: the hits of any key save a shared refresh token again after the pauses`(
        key: String
    ) throws {
        let (scene, store) = try refused()
        if key == "a2" {
            _ = scene.call("a2")
            try scene.succeed("a2", with: .hour("a2 1"))
        }
        let count = { store.log.count { $0 == "save -" } }
        var saves = count()
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] where key == "a1" || seconds > 1 {
            scene.advance(by: .seconds(seconds) - .milliseconds(1))
            _ = scene.call(key)
            #expect(count() == saves)
            scene.advance(by: .milliseconds(1))
            _ = scene.call(key)
            saves += 1
            #expect(count() == saves)
        }
        store.fail()
        scene.advance(by: .seconds(60))
        _ = scene.call(key)
        #expect(store.contents?.refreshToken == "r1")
        saves = count()
        scene.advance(by: .seconds(600))
        _ = scene.call(key)
        #expect(count() == saves)
    }

    @Test func `50: no refresh ahead spends a shared refresh token while its store lacks the last one`() throws {
        let (scene, store) = try refused()
        scene.advance(by: .seconds(3_000))
        #expect(scene.call("a1").value?.value == "a1 1" && scene.loadCount("a1") == 0)
        store.fail()
        scene.advance(by: .seconds(60))
        #expect(scene.call("a1").value?.value == "a1 1" && store.contents?.refreshToken == "r1")
        #expect(scene.call("a1").value?.value == "a1 1" && scene.loadCount("a1") == 1)
    }

    @Test func `50: a load that callers wait for saves a shared refresh token first, and its event says that it failed`() throws {
        let (scene, store) = try refused(), events = scene.services["a1"].events()
        let saves = store.log.count
        scene.advance(by: .seconds(3_600))
        _ = scene.call("a1")
        _ = try scene.load("a1")
        #expect(store.log.count > saves && store.log.last == "save -")
        let log = Log<TokenEvent>()
        let reader = scene.stage.start { for await event in events { log.append(event) } }
        reader.cancel()
        scene.stage.run()
        #expect(log.entries.first { $0.name == .loadStarted }?.error?.underlying is ScriptedStore.Failure)
    }

    @Test func `45: keys that share a grant load again after resume, also if it comes before the drain has ended`() throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        _ = scene.call("a1")
        let load = try scene.load("a1"), end = Self.drain(scene)
        _ = scene.stage.start { [services = scene.services] in await services.resume() }
        scene.succeed(load, with: .hour("a1"))
        #expect(end.value == true)
        let caller = scene.call("a2")
        #expect(caller.code == nil && scene.loadCount("a2") == 1)
    }

    @Test func `45: a key of a shared grant spends no refresh token in the background in the program's first minute`() throws {
        let scene = KeyScene(grant: { String($0.prefix(1)) })
        scene.perform("a1") { await $0.replace(with: AccessToken("a1 1", lifetime: .seconds(60), refreshToken: "r1")) }
        scene.advance(by: .seconds(50))
        #expect(scene.call("a1").value?.value == "a1 1" && scene.loadCount("a1") == 0)
    }

    @Test(arguments: [0, 1], [1, 2])
    func `45: a service made during a drain learns of the drain and of its end`(limit: Int, look: Int) async {
        let stage = Stage(), clock = WatchedClock(), loads = Lock(0)
        // The first clock reading is the policy's, before the service is created; the second is the table's, before it inserts
        // the service.
        let policy: @Sendable (String) -> RefreshPolicy = { _ in
            _ = clock.now
            return RefreshPolicy()
        }
        let services = TokenServices<String>(
            keepingIdle: limit, policy: policy, environment: .driven(by: stage, clock: clock)
        ) { _, _ in
            loads.withLock { $0 += 1 }
            return .hour("token")
        }
        func make(_ key: String, meanwhile body: @escaping @Sendable () async -> Void) -> TokenService {
            clock.interrupt(at: look) {
                _ = stage.start { await body() }
                stage.run()
            }
            let service = services[key]
            #expect(clock.wasInterrupted)
            return service
        }
        let drained = make("a") { await services.drain(within: .seconds(1)) }
        let refused = stage.start { try await drained.retrieveToken() }
        #expect(refused.code == .drained && loads.withLock { $0 } == 0)
        let resumed = make("b") { await services.resume() }
        let served = stage.start { try await resumed.retrieveToken() }
        #expect(served.value?.value == "token")
    }
}

/// A clock that stands still, and performs an action just before one of its readings.
private final class WatchedClock: Clock {
    typealias Instant = ManualClock.Instant

    private let clock = ManualClock()
    private let interruption = Lock<(looks: Int, body: (@Sendable () -> Void)?)>((0, nil))

    func interrupt(at look: Int, _ body: @escaping @Sendable () -> Void) { interruption.withLock { $0 = (look, body) } }
    var wasInterrupted: Bool { interruption.withLock { $0.looks <= 0 } }

    var now: Instant {
        let body = interruption.withLock { interruption -> (@Sendable () -> Void)? in
            interruption.looks -= 1
            return interruption.looks == 0 ? interruption.body : nil
        }
        body?()
        return clock.now
    }

    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await clock.sleep(until: deadline, tolerance: tolerance)
    }
}
