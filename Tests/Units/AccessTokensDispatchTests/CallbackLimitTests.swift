@testable import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantees 7 and 13: a call is answered when its limit passes, and only then ahead of others")
struct CallbackLimitTests {
    @Test func `a limit that passes ends one call's wait; the load goes on, and its token is kept`() throws {
        let scene = ShimScene()
        scene.call("1", within: .seconds(2))
        let load = try scene.load()
        scene.pass(.seconds(2) - .nanoseconds(1))
        #expect(scene.log.entries.isEmpty)
        scene.pass(.nanoseconds(1))
        #expect(scene.log.entries == ["1 deadlineExceeded"])
        load.succeed(with: .hour("a"))
        scene.run()
        scene.call("2")
        scene.run()
        #expect(scene.log.entries == ["1 deadlineExceeded", "2 a"] && scene.loader.loadCount == 1)
    }

    @Test func `calls whose limits have all passed leave no waiter behind`() throws {
        let scene = ShimScene()
        for round in 1...3 {
            scene.call("\(round)", within: .seconds(2))
            scene.run()
            #expect(scene.service.lobby.withLock { $0.waiters.count } == 1)
            scene.pass(.seconds(2))
            #expect(scene.log.entries.count == round && scene.service.lobby.withLock { $0.waiters.count } == 0)
        }
        // Without an alarm: the next call notices that the limit has passed.
        scene.call("4", within: .seconds(2))
        scene.run()
        scene.clock.advance(by: .seconds(2))
        scene.call("5", within: .seconds(2))
        #expect(scene.service.lobby.withLock { $0.waiters.count } == 0)
        try scene.load().succeed(with: .hour("a"))
        scene.run()
        #expect(scene.log.entries.suffix(2) == ["4 deadlineExceeded", "5 a"])
    }

    @Test func `calls whose limits pass are answered first, in the order of the limits; the others keep their order`() throws {
        let scene = ShimScene()
        for (name, limit) in [("1", nil), ("2", 5), ("3", 2), ("4", nil), ("5", 2), ("6", 60)] {
            scene.call(name, within: limit.map { .seconds($0) })
        }
        let load = try scene.load()
        scene.pass(.seconds(2))
        #expect(scene.log.entries == ["3 deadlineExceeded", "5 deadlineExceeded"])
        scene.pass(.seconds(3))
        #expect(scene.log.entries.last == "2 deadlineExceeded")
        load.succeed(with: .hour("a"))
        scene.run()
        #expect(scene.log.entries[3...] == ["1 a", "4 a", "6 a"])
        scene.pass(.seconds(60))
        #expect(scene.log.entries.count == 6, "once each")
    }

    @Test func `when a call's limit passes, an answer that is already there counts`() {
        let stage = Stage(), clock = ManualClock(), queue = ManualQueue(), log = Log<String>(), store = ScriptedStore()
        let service = TokenService(store: store, environment: .driven(by: stage, clock: clock)) { _ in
            throw ScriptedFailure.transient
        }
        let shim = AccessTokenService(service: service, enqueue: queue.async)
        store.hold()
        shim.reset { _ in log.append("signed out") }
        shim.retrieveToken(within: .seconds(2)) { log.append("1 \(ShimScene.text($0))") }
        shim.retrieveToken { log.append("2 \(ShimScene.text($0))") }
        for _ in 1...2 {
            stage.run()
            queue.run()
            // The store hasn't removed the token yet, so the sign-out still waits, and the load has failed.
            #expect(log.entries.isEmpty)
            clock.advance(by: .seconds(1))
        }
        stage.run()
        queue.run()
        #expect(log.entries == ["1 loadFailed"])
        store.release()
        stage.run()
        queue.run()
        #expect(log.entries == ["1 loadFailed", "signed out", "2 loadFailed"])
    }

    @Test(arguments: [0, -1, .min])
    func `with a limit of zero or less a hit is still a hit, and a miss starts no load`(seconds: Int64) throws {
        let limit = Duration.seconds(seconds)
        let scene = ShimScene()
        scene.call("1", within: limit)
        #expect(scene.stage.pending == 0 && scene.log.entries.isEmpty, "never on the caller's stack")
        scene.run()
        #expect(scene.log.entries == ["1 deadlineExceeded"] && scene.loader.loadCount == 0)
        scene.call("2")
        try scene.deliver("a")
        scene.call("3", within: limit)
        scene.queue.run()
        #expect(scene.log.entries.last == "3 a" && scene.clock.sleeperCount == 0)
    }

    @Test func `a hit with a limit needs neither an alarm nor a dispatch of its own`() throws {
        let scene = try ShimScene.holding("a")
        let dispatches = scene.queue.dispatches.entries.count
        for number in 0..<100 { scene.call("\(number)", within: .seconds(number)) }
        #expect(scene.stage.pending == 0 && scene.queue.dispatches.entries.count == dispatches + 1)
        scene.queue.run()
        #expect(scene.log.entries == (0..<100).map { "\($0) a" })
    }

    @Test func `calls whose limits pass on their way to the actor start no load`() {
        let scene = ShimScene()
        scene.call("1", within: .seconds(2))
        scene.call("2", within: .seconds(2))
        scene.clock.advance(by: .seconds(2))
        scene.run()
        #expect(scene.log.entries == ["1 deadlineExceeded", "2 deadlineExceeded"] && scene.loader.loadCount == 0)
        scene.pass(.seconds(30))
        #expect(scene.log.entries.count == 2 && scene.clock.sleeperCount == 0)
    }

    @Test func `a handler is released when its limit has passed, whatever the line waits for`() throws {
        final class Screen: Sendable {}
        let scene = ShimScene()
        scene.call("1")
        weak let watched = {
            let screen = Screen()
            scene.shim.retrieveToken(within: .seconds(2)) { _ in withExtendedLifetime(screen) {} }
            return screen
        }()
        _ = try scene.load()
        #expect(watched != nil)
        scene.pass(.seconds(2))
        #expect(watched == nil && scene.log.entries.isEmpty)
    }

    @Test func `many calls with limits share one alarm`() throws {
        let scene = ShimScene()
        for number in 1...1_000 { scene.call("\(number)", within: .seconds(3_600 + number)) }
        // The carrier and the alarm are pending.
        #expect(scene.stage.pending == 2)
        let load = try scene.load()
        // The service's own alarm, and the line's.
        #expect(scene.clock.sleeperCount == 2)
        scene.call("hasty", within: .seconds(1))
        scene.stage.run()
        #expect(scene.clock.sleeperCount == 3)
        scene.pass(.seconds(1))
        #expect(scene.log.entries == ["hasty deadlineExceeded"] && scene.clock.sleeperCount == 2)
        load.succeed(with: .hour("a"))
        scene.run()
        scene.stage.run()
        #expect(scene.log.entries.count == 1_001 && scene.clock.sleeperCount == 0)
    }

    @Test func `calls with ever earlier limits share alarms, and each is answered at its time`() throws {
        let scene = ShimScene()
        for number in 0..<1_000 { scene.call("\(number)", within: .milliseconds(2_000 - number)) }
        scene.stage.run()
        #expect(scene.clock.sleeperCount < 20)
        scene.clock.advance(by: .milliseconds(1_001) - .nanoseconds(1))
        scene.run()
        #expect(scene.log.entries.isEmpty)
        scene.pass(.nanoseconds(1))
        #expect(scene.log.entries == ["999 deadlineExceeded"])
        for number in 2...1_000 {
            scene.pass(.milliseconds(1))
            #expect(scene.log.entries.count == number)
        }
        #expect(scene.log.entries == (0..<1_000).reversed().map { "\($0) deadlineExceeded" })
    }

    @Test func `many calls with limits, each answered early, leave no alarm behind`() throws {
        let scene = ShimScene()
        for number in 0..<100 {
            scene.call("\(number)", within: .seconds(3_600))
            try scene.load().fail(with: ScriptedFailure.transient)
            scene.shim.retryNow()
            scene.run()
        }
        scene.stage.run()
        #expect(scene.log.entries.count == 100 && scene.clock.sleeperCount == 0)
    }

    @Test func `an alarm keeps no service alive, and ends with the last of its callers and holders`() throws {
        let clock = ManualClock(), stage = Stage(), queue = ManualQueue(), loader = ScriptedLoader()
        weak let watched = {
            let core = TokenService(environment: .driven(by: stage, clock: clock), loader: loader.tokenLoader)
            let shim = AccessTokenService(service: core, enqueue: queue.async)
            shim.retrieveToken(within: .seconds(60)) { _ in }
            return core
        }()
        stage.run()
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: .hour("a"))
        stage.run()
        queue.run()
        call.value?.dropHandler()
        #expect(watched == nil)
        stage.run()
        #expect(clock.sleeperCount == 0)
    }

    @Test func `a sign-out answers a call with a limit in its turn`() throws {
        let scene = ShimScene()
        scene.call("1", within: .seconds(5))
        scene.stage.run()
        scene.shim.reset { [log = scene.log] _ in log.append("signed out") }
        scene.run()
        scene.pass(.seconds(5))
        #expect(scene.log.entries == ["1 reset", "signed out"])
    }

    @Test func `retryNow takes effect for the calls behind it, and calls its handler in their order`() throws {
        let scene = ShimScene()
        for _ in 1...2 {
            scene.call("failed")
            try scene.load().fail(with: ScriptedFailure.transient)
            scene.run()
        }
        scene.call("paused")
        scene.shim.retryNow { [log = scene.log] in log.append("retried") }
        scene.call("tried")
        scene.run()
        #expect(scene.log.entries == ["failed loadFailed", "failed loadFailed", "paused loadFailed", "retried"])
        try scene.deliver("a")
        #expect(scene.log.entries.last == "tried a")
    }
}

@Suite("Limits of callbacks with any clock")
struct CallbackLimitClockTests {
    private let stage = Stage(), time = ManualClock(), queue = ManualQueue(), log = Log<String>(), loader = ScriptedLoader()

    private func shim(_ fault: OddClock.Fault) -> AccessTokenService {
        let service = TokenService(
            environment: .driven(by: stage, clock: OddClock(time, fault: fault)), loader: loader)
        return AccessTokenService(service: service, enqueue: queue.async)
    }

    private func call(_ shim: AccessTokenService, _ name: String, within limit: Duration?) {
        shim.retrieveToken(within: limit) { [log] in log.append("\(name) \(ShimScene.text($0))") }
    }

    private func runOften() {
        for _ in 0..<20 { stage.runOnce() }
        queue.run()
    }

    @Test func `with a clock that never wakes, the next call answers those whose limits have passed`() {
        let shim = shim(.neverWakes)
        call(shim, "1", within: .seconds(2))
        stage.run()
        time.advance(by: .seconds(2))
        call(shim, "2", within: .seconds(2))
        queue.run()
        #expect(log.entries == ["1 deadlineExceeded"])
        time.advance(by: .seconds(2))
        shim.invalidate(.hour("other"))
        stage.run()
        queue.run()
        #expect(log.entries == ["1 deadlineExceeded", "2 deadlineExceeded"])
    }

    @Test func `with a clock that wakes too early, a limit still passes at its own time`() {
        let shim = shim(.wakesEarly(by: .milliseconds(1)))
        call(shim, "1", within: .seconds(2))
        runOften()
        time.advance(by: .seconds(2) - .nanoseconds(1))
        runOften()
        #expect(log.entries.isEmpty)
        time.advance(by: .nanoseconds(1))
        runOften()
        #expect(log.entries == ["1 deadlineExceeded"])
    }

    @Test func `with a clock that can't sleep, a wait ends at once rather than never`() {
        call(shim(.failsToSleep), "1", within: .seconds(3_600))
        stage.run()
        queue.run()
        #expect(log.entries.count == 1)
    }

    @Test func `with a clock whose sleep returns at once, nothing stays busy once the call is answered`() {
        let shim = shim(.wakesEarly(by: .seconds(1_000_000)))
        call(shim, "1", within: .seconds(2))
        runOften()
        time.advance(by: .seconds(2))
        runOften()
        #expect(log.entries == ["1 deadlineExceeded"])
        call(shim, "2", within: .seconds(2))
        let load = stage.startOnce { [loader] in try await loader.nextCall() }
        runOften()
        load.value?.succeed(with: .hour("a"))
        runOften()
        // The delivery has cancelled the alarm.
        runOften()
        #expect(log.entries.last == "2 a" && stage.pending == 0)
    }
}
