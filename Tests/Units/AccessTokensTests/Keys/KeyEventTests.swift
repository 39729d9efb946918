import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensKeys

@Suite("Guarantee 19 for many keys: one stream has the events of all of them") struct KeyEventTests {
    /// The events of a stream so far.
    private func told(by events: AsyncStream<KeyEvent<String>>, in scene: KeyScene) -> [String] {
        let log = Log<String>()
        let reader = scene.stage.start { for await event in events { log.append("\(event.key) \(event.event.name)") } }
        reader.cancel()
        scene.stage.run()
        return log.entries
    }

    @Test func `one stream has the events of every key, also of services that are made again`() throws {
        let scene = KeyScene(keepingIdle: 0), events = scene.services.events()
        try scene.hold(.hour("1"), for: "a")
        _ = scene.call("b")
        try scene.fail("b")
        try scene.hold(.hour("2"), for: "a")
        #expect(scene.makings == ["a", "b", "a"])
        #expect(
            told(by: events, in: scene) == [
                "a loadStarted", "a loadSucceeded", "b loadStarted", "b loadFailed", "a loadStarted", "a loadSucceeded",
            ])
    }

    @Test func `a sign-out of an account sends an event for each of its keys`() throws {
        let scene = KeyScene()
        for key in ["a1", "a2", "b1"] { try scene.hold(.hour(key), for: key) }
        let events = scene.services.events()
        _ = scene.signOut { $0.hasPrefix("a") }
        scene.perform("a1") { await $0.replace(with: .hour("new")) }
        #expect(told(by: events, in: scene).sorted() == ["a1 replaced", "a1 reset", "a2 reset"])
    }

    @Test func `a slow reader of all keys' events loses the oldest`() throws {
        let scene = KeyScene(), events = scene.services.events(bufferingNewest: 2)
        for key in ["a", "b"] { try scene.hold(.hour(key), for: key) }
        #expect(told(by: events, in: scene) == ["b loadStarted", "b loadSucceeded"])
    }

    @Test func `a service's own stream works as before beside the stream of all keys`() throws {
        let scene = KeyScene(), all = scene.services.events(), own = scene.services["a"].events()
        for key in ["a", "b"] { try scene.hold(.hour(key), for: key) }
        let log = Log<String>()
        let reader = scene.stage.start { for await event in own { log.append("\(event.name)") } }
        reader.cancel()
        scene.stage.run()
        #expect(log.entries == ["loadStarted", "loadSucceeded"])
        #expect(told(by: all, in: scene).count == 4)
    }

    @Test func `the stream of all keys ends with the table, and a service that is still held goes on`() throws {
        let stage = Stage(), loader = ScriptedLoader()
        var services: TokenServices? = TokenServices<String>(environment: .driven(by: stage)) { _ in loader }
        let service = try #require(services?["a"]), events = try #require(services?.events())
        services = nil
        let reader = stage.start { await events.reduce(into: 0) { count, _ in count += 1 } }
        #expect(reader.value == 0)
        let caller = stage.start { try await service.retrieveToken() }
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: .hour("1"))
        stage.run()
        #expect(caller.value?.value == "1")
    }

    @Test func `the event of a shared grant that can't be saved names the key that keeps the grant`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) }), events = scene.services.events()
        scene.stores?["a"].fail(.save)
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        _ = scene.call("a2")
        try scene.succeed("a2", with: .granted("a2 1", by: "r2"))
        let stories = told(by: events, in: scene)
        #expect(Set(stories.filter { $0.hasPrefix("a ") }) == ["a storeFailed"], "\(stories)")
        #expect(stories.contains("a1 replaced") && stories.contains("a2 loadSucceeded"))
    }

    @Test func `neither an event's description nor its dump names its key`() throws {
        let scene = KeyScene(), events = scene.services.events()
        _ = scene.call("Anna")
        let event = try #require(
            scene.stage.start {
                var iterator = events.makeAsyncIterator()
                return await iterator.next()
            }.value ?? nil)
        var dumped = ""
        dump(event, to: &dumped)
        #expect(event.key == "Anna" && !"\(event) \(dumped) \(String(reflecting: event))".contains("Anna"))
        let line = event.description(label: "tenant 7 error=x\nloadFailed")
        #expect(line == "key=tenant_7_error_x\\nloadFailed loadStarted generation=0 load=1 callers=1")
    }

    @Test func `an event is made once for each reader, and not at all without one`() {
        let hub = EventHub<Int>(), made = Log<Int>()
        let event: @Sendable () -> Int = {
            made.append(1)
            return 1
        }
        hub.send(event())
        #expect(made.entries.isEmpty)
        let streams = [hub.subscribe(bufferingNewest: 1), hub.subscribe(bufferingNewest: 1)]
        hub.send(event())
        #expect(made.entries.count == streams.count)
    }

    @Test func `19: the generation of a shared grant's key never goes back when its store fails`() throws {
        let scene = KeyScene(hasStores: true, grant: { String($0.prefix(1)) })
        let keeper = scene.services["a"], generations = Log<Int>()
        let reader = scene.stage.start { [services = scene.services] in
            for await event in services.events() where event.key == "a" { generations.append(event.event.generation) }
        }
        scene.perform("a1") { await $0.replace(with: .granted("a1 1", by: "r1")) }
        scene.stores?["a"].fail(.save)
        try scene.hold(.granted("a2 1", by: "r2"), for: "a2")
        scene.stores?["a"].fail()
        try scene.hold(.granted("a 1", by: "r3"), for: "a")
        #expect(generations.entries.count == 3 && generations.entries == generations.entries.sorted(), "\(generations.entries)")
        reader.cancel()
        withExtendedLifetime(keeper) {}
    }
}
