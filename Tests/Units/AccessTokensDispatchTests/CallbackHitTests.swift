import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 13: hits share a dispatch, and each gets its own moment's token")
struct CallbackHitTests {
    @Test func `many hits in a row share one dispatch`() throws {
        let scene = try ShimScene.holding("a")
        let before = scene.queue.dispatches.entries.count
        for number in 0..<1_000 { scene.call("\(number)") }
        #expect(scene.queue.dispatches.entries.count == before + 1)
        scene.queue.run()
        #expect(scene.log.entries == (0..<1_000).map { "\($0) a" })
    }

    @Test(arguments: [1, 64, 65, 1_000])
    func `hits called while handlers run share their dispatch, up to a bound`(calls: Int) throws {
        let scene = try ShimScene.holding("a")
        // Each delivery has the whole room, even after one that used it up.
        for _ in 1...2 {
            let before = (entries: scene.log.entries.count, dispatches: scene.queue.dispatches.entries.count)
            scene.call { for number in 1...calls { scene.call("\(number)") } }
            scene.queue.run()
            #expect(Array(scene.log.entries[before.entries...]) == ["a"] + (1...calls).map { "\($0) a" })
            #expect(scene.queue.dispatches.entries.count - before.dispatches == (calls > 64 ? 2 : 1))
        }
    }

    @Test func `a handler that calls again and again doesn't monopolise the queue`() throws {
        let scene = try ShimScene.holding("a")
        @Sendable func ask(_ times: Int) {
            scene.call { if times > 1 { ask(times - 1) } }
        }
        ask(1_000)
        scene.queue.async { scene.log.append("other") }
        scene.queue.run()
        #expect(scene.log.entries.count == 1_001)
        #expect(scene.log.entries.firstIndex(of: "other").map { $0 <= 65 } == true)
    }

    @Test func `a second delivery on a concurrent queue leaves its handlers to the running one`() throws {
        let scene = try ShimScene.holding("a")
        scene.call("first") {
            // More calls than one delivery takes along.
            for _ in 0..<65 { scene.call("second") }
            // The second delivery's block runs now, in the middle of the first one.
            scene.queue.run()
            scene.log.append("first is done")
        }
        scene.queue.run()
        #expect(scene.log.entries == ["first a", "first is done"] + Array(repeating: "second a", count: 65))
    }

    @Test(arguments: 1...4)
    func `each hit gets the token of its own moment, though they share a delivery`(others: Int) throws {
        let scene = try ShimScene.holding("a")
        scene.call("0")
        scene.call("0")
        for number in 1...others {
            _ = scene.stage.start { [service = scene.service] in await service.replace(with: .hour("b\(number)")) }
            scene.call("\(number)")
            scene.call("\(number)")
        }
        scene.queue.run()
        let later = (1...others).flatMap { ["\($0) b\($0)", "\($0) b\($0)"] }
        #expect(scene.log.entries == ["0 a", "0 a"] + later)
    }

    @Test func `a call after the token's end doesn't join earlier hits that are still undelivered`() throws {
        let scene = try ShimScene.holding("a")
        scene.call("in time")
        scene.clock.advance(by: .seconds(3_540))
        scene.call("late")
        try scene.deliver("b")
        #expect(scene.log.entries == ["in time a", "late b"])
    }

    @Test func `a hit doesn't rely on a dispatch that another thread has yet to make`() async throws {
        let service = TokenService(environment: .init(clock: ManualClock())) { _ in .hour("a") }
        _ = try await service.retrieveToken()
        let queue = ManualQueue(), log = Log<String>(), other = Lock<(@Sendable () -> Void)?>(nil)
        let shim = AccessTokenService(service: service) { work in
            // Between the first thread's decision to dispatch and its dispatch.
            other.withLock { $0.take() }?()
            queue.async(work)
        }
        other.withLock { other in
            other = {
                shim.retrieveToken { _ in log.append("second") }
                // The deliveries for which `queue.sync {}` would wait.
                queue.run()
                log.append("synchronous")
            }
        }
        shim.retrieveToken { _ in log.append("first") }
        queue.run()
        #expect(log.entries == ["first", "second", "synchronous"])
        #expect(queue.dispatches.entries.count == 2)
        for _ in 1...3 { shim.retrieveToken { _ in log.append("later") } }
        queue.run()
        #expect(log.entries.count == 6 && queue.dispatches.entries.count == 3)
    }

    @Test func `a call in the soft window is a hit, and begins one refresh`() throws {
        let scene = try ShimScene.holding("a")
        scene.clock.advance(by: .seconds(3_000))
        for _ in 1...3 { scene.call() }
        try scene.deliver("b")
        #expect(scene.log.entries == ["a", "a", "a"] && scene.loader.loadCount == 2)
    }

    @Test func `a call right after an operation took effect is a hit, and visits no actor`() throws {
        let scene = try ShimScene.holding("a")
        scene.shim.retryNow()
        scene.run()
        scene.call("next")
        // Only the queue runs: a call that had gone to the actor would wait.
        scene.queue.run()
        #expect(scene.log.entries == ["next a"])
    }
}
