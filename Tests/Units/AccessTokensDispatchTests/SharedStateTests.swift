import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing

@Suite("Guarantees 13 and 14: fences in the order of the calls; async and callback callers share one state")
struct SharedStateTests {
    @Test func `14: async and callback callers share one token and one load`() throws {
        let scene = ShimScene()
        let events = scene.service.events()
        for number in 0..<10 { scene.call("\(number)") }
        let waiting = (0..<10).map { _ in
            scene.stage.start { [service = scene.service] in try await service.retrieveToken() }
        }
        try scene.deliver("a")
        #expect(waiting.allSatisfy { $0.value?.value == "a" })
        #expect(scene.log.entries.count == 10)
        #expect(scene.loader.loadCount == 1)
        let last = scene.stage.start {
            var iterator = events.makeAsyncIterator()
            _ = await iterator.next()
            return await iterator.next()
        }
        #expect(last.value??.callers == 20, "every handler counts as a caller")
    }

    @Test func `14: a token that an async caller drops is no hit for a callback caller`() throws {
        let scene = try ShimScene.holding("a")
        _ = scene.stage.start { [service = scene.service] in await service.invalidate(.hour("a")) }
        scene.call()
        try scene.deliver("b")
        #expect(scene.log.entries == ["b"])
    }

    @Test func `a call made before a reset gets the reset error, whenever it reaches the actor`() throws {
        let scene = ShimScene()
        scene.call()
        // The call hasn't reached the actor yet; an async caller's reset reaches it first.
        let late = Stage()
        _ = late.start { [service = scene.service] in _ = await service.reset() }
        scene.run()
        #expect(scene.log.entries == ["reset"])
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `calls after the shim's own reset get nothing from before it`() throws {
        let scene = try ShimScene.holding("old")
        scene.call("before")
        scene.shim.reset { [log = scene.log] in log.append("signed out, dropped \($0.discarded.first?.value ?? "nothing")") }
        scene.call("after")
        scene.run()
        #expect(scene.log.entries == ["before old", "signed out, dropped old"])
        let load = try scene.load()
        load.succeed(with: .hour("new"))
        scene.run()
        #expect(scene.log.entries.last == "after new")
    }

    @Test func `misses before the shim's reset get the reset error, misses after it the new token`() throws {
        let scene = ShimScene()
        scene.call("1")
        scene.stage.run()
        scene.call("2")
        scene.shim.reset()
        scene.call("3")
        scene.run()
        #expect(scene.log.entries == ["1 reset", "2 reset"])
        _ = try scene.load()
        try scene.deliver("new")
        #expect(scene.log.entries.last == "3 new")
    }

    @Test func `invalidate and replace take effect for the calls behind them, and call their handlers in order`() throws {
        let scene = try ShimScene.holding("a")
        let log = scene.log
        scene.call("1")
        scene.shim.replace(with: .hour("b")) { _ in log.append("replaced") }
        scene.call("2")
        scene.shim.invalidate(.hour("b")) { log.append("invalidated") }
        scene.call("3")
        scene.run()
        // The refusal has taken effect before the second call reached the actor.
        #expect(log.entries == ["1 a", "replaced"])
        try scene.deliver("c")
        #expect(log.entries == ["1 a", "replaced", "2 c", "invalidated", "3 c"])
    }

    @Test func `a call made before an async reset gets the reset error, also behind operations of the shim`() throws {
        let scene = try ShimScene.holding("a")
        scene.shim.replace(with: .hour("b"))
        scene.run()
        scene.call("1")
        scene.queue.run()
        scene.shim.invalidate(.hour("b"))
        scene.call("2")
        let late = Stage()
        _ = late.start { [service = scene.service] in _ = await service.reset() }
        scene.run()
        #expect(scene.log.entries == ["1 b", "2 reset"])
        #expect(scene.loader.loadCount == 1)
    }

    @Test(arguments: [1, 2])
    func `a call isn't delivered as a hit behind the reset that ended the hit's token`(reading: Int) {
        let stage = Stage(), queue = ManualQueue(), log = Log<String>(), meanwhile = Meanwhile()
        let clock = OddClock(ManualClock(), onReading: meanwhile.read)
        let service = TokenService(environment: .driven(by: stage, clock: clock), loader: ScriptedLoader())
        let shim = AccessTokenService(service: service, enqueue: queue.async)
        _ = stage.start { await service.replace(with: .hour("old")) }
        // A call behind others also looks at the token's number.
        if reading == 2 {
            shim.retryNow()
            stage.run()
        }
        // Another thread signs out between one of this call's looks and its place.
        meanwhile.atReading(reading) {
            shim.reset { _ in log.append("signed out") }
            stage.run()
        }
        shim.retrieveToken { log.append(ShimScene.text($0)) }
        stage.run()
        queue.run()
        #expect(log.entries == ["signed out"])
    }

    @Test func `the shim's sign-out is a fence at once, and its handler is called when the store has removed the token`() throws {
        let stage = Stage(), queue = ManualQueue(), log = Log<String>(), store = ScriptedStore()
        let service = TokenService(store: store, environment: .driven(by: stage, clock: ManualClock())) { _ in .hour("a") }
        let shim = AccessTokenService(service: service, enqueue: queue.async)
        func run() {
            stage.run()
            queue.run()
        }
        shim.replace(with: .hour("old")) { _ in log.append("signed in") }
        run()
        store.hold()
        shim.reset { log.append("removed \($0.discarded.first?.value ?? "nothing")") }
        shim.retrieveToken { log.append(ShimScene.text($0)) }
        run()
        #expect(log.entries == ["signed in"] && service.cachedToken == nil)
        store.release()
        run()
        #expect(log.entries == ["signed in", "removed old", "a"])
    }

    @Test func `two shims over one service share its state; each keeps its own order`() throws {
        let scene = ShimScene()
        let other = AccessTokenService(service: scene.service, enqueue: scene.queue.async)
        scene.call("1")
        other.retrieveToken { [log = scene.log] in log.append("2 \(ShimScene.text($0))") }
        try scene.deliver("a")
        #expect(scene.log.entries.sorted() == ["1 a", "2 a"])
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `misses before and after an async reset don't share an answer`() throws {
        let scene = ShimScene(), late = Stage()
        scene.call("1")
        // The first call hasn't reached the actor yet.
        _ = late.start { [service = scene.service] in _ = await service.reset() }
        scene.call("2")
        scene.run()
        #expect(scene.log.entries == ["1 reset"])
        try scene.deliver("new")
        #expect(scene.log.entries == ["1 reset", "2 new"])
    }

    @Test func `a call after an operation that has taken effect is a hit, which needs only the queue`() throws {
        let scene = try ShimScene.holding("a")
        scene.shim.invalidate(.hour("other"))
        scene.run()
        scene.call()
        #expect(scene.stage.pending == 0)
        scene.queue.run()
        #expect(scene.log.entries == ["a"])
    }
}
