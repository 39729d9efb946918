import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 13: every handler exactly once, on the queue, in the order of the calls")
struct CallbackTests {
    @Test(arguments: [1, 2, 1_000])
    func `any number of handlers share one load, and are called in the order of the calls`(handlers: Int) throws {
        let scene = ShimScene()
        for number in 0..<handlers { scene.call("\(number)") }
        try scene.deliver("a")
        #expect(scene.log.entries == (0..<handlers).map { "\($0) a" })
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `a handler is never called on the caller's stack, also on a hit`() throws {
        let scene = try ShimScene.holding("a")
        scene.call()
        #expect(scene.log.entries.isEmpty)
        scene.queue.run()
        #expect(scene.log.entries == ["a"], "and a hit needs nothing but the queue")
    }

    @Test func `a hit does not overtake a miss that was called before it`() throws {
        let scene = ShimScene()
        scene.call("miss")
        scene.stage.run()
        // An async caller replaces the token; the miss has its answer, but its handler hasn't been called yet.
        _ = scene.stage.start { [service = scene.service] in await service.replace(with: .hour("b")) }
        scene.call("hit")
        scene.run()
        #expect(scene.log.entries == ["miss b", "hit b"])
    }

    // Museum 27: handlers run under the lock: deadlock (GTMAppAuth; Alamofire PR#3322).
    @Test func `a handler may call again, and is answered later on the queue`() throws {
        let scene = try ShimScene.holding("a")
        scene.call("first") { scene.call("second") }
        scene.call("third")
        scene.queue.run()
        #expect(scene.log.entries == ["first a", "third a", "second a"])
    }

    // Museum 18: callbacks dropped when the service is released (the article; Monstra).
    @Test func `a service released mid-load still answers every handler`() throws {
        let loader = ScriptedLoader(), stage = Stage(), queue = ManualQueue(), log = Log<String>()
        weak let watched = {
            let core = TokenService(environment: .driven(by: stage, clock: ManualClock()), loader: loader.tokenLoader)
            let shim = AccessTokenService(service: core, enqueue: queue.async)
            for _ in 0..<3 { shim.retrieveToken { log.append(ShimScene.text($0)) } }
            return core
        }()
        stage.run()
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: .hour("a"))
        stage.run()
        queue.run()
        #expect(log.entries == ["a", "a", "a"])
        call.value?.dropHandler()
        #expect(watched == nil, "and nothing keeps it alive afterwards")
    }

    @Test(arguments: [true, false])
    func `handlers get the time-out error, now and later, if the loader never answers`(isRepeatable: Bool) throws {
        let scene = ShimScene(isRepeatable: isRepeatable)
        scene.call("1")
        scene.call("2")
        scene.run()
        scene.clock.advance(by: .seconds(30))
        scene.run()
        #expect(scene.log.entries == ["1 loadTimedOut", "2 loadTimedOut"])
        scene.call("3")
        scene.run()
        #expect(scene.log.entries.count == (isRepeatable ? 2 : 3))
        #expect(scene.loader.loadCount == (isRepeatable ? 2 : 1))
    }

    @Test func `the first answer counts if a loader answers twice`() throws {
        let scene = ShimScene()
        scene.call("1")
        let load = try scene.load()
        load.succeed(with: .hour("first"))
        load.succeed(with: .hour("second"))
        scene.run()
        load.fail(with: ScriptedFailure.transient)
        scene.call("2")
        scene.run()
        #expect(scene.log.entries == ["1 first", "2 first"])
    }

    @Test func `a loader that releases its handler without calling it fails at once, with a clear error`() throws {
        let scene = ShimScene()
        let error = Log<String>()
        scene.shim.retrieveToken { result in
            if case .failure(let failure) = result { error.append("\(failure)") }
        }
        try scene.load().dropHandler()
        scene.run()
        #expect(error.entries.count == 1 && error.entries[0].contains("without calling it"))
    }

    @Test func `a loader that takes the token to replace gets the refresh token, and none after a sign-out`() throws {
        let scene = ShimScene()
        scene.shim.replace(with: AccessToken("a", lifetime: .seconds(3600), refreshToken: "r1"))
        scene.run()
        scene.clock.advance(by: .seconds(3_600))
        scene.call()
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "r1")
        scene.shim.reset()
        load.succeed(with: AccessToken("late", lifetime: .seconds(3600), refreshToken: "r2"))
        scene.run()
        scene.call()
        #expect(try scene.load().previous == nil)
        #expect(scene.log.entries == ["reset"] && scene.service.cachedToken == nil)
    }

    /// The two kinds of loaders: the articles' one, and one that takes the token to replace.
    private struct OneMethod: AccessTokenLoader {
        let given: Log<AccessToken?>
        func load(then handler: @escaping Handler) {
            given.append(nil)
            handler(.success(.hour("a")))
        }
    }

    private struct TwoParameters: CallbackTokenLoader {
        let given: Log<AccessToken?>
        func load(replacing previous: AccessToken?, then handler: @escaping Handler) {
            given.append(previous)
            handler(.success(.hour("a")))
        }
    }

    @Test func `the articles' loader is called without a token to replace, and the newer form with it`() async throws {
        let given = Log<AccessToken?>(), previous = AccessToken.hour("previous")
        _ = try await OneMethod(given: given).tokenLoader.loadToken(replacing: previous)
        _ = try await TwoParameters(given: given).tokenLoader.loadToken(replacing: previous)
        #expect(given.entries == [nil, previous])
    }

    @Test func `signInState answers after earlier operations, and starts no load`() throws {
        let scene = ShimScene(), log = scene.log
        scene.shim.signInState { log.append("\($0)") }
        scene.run()
        scene.shim.replace(with: .hour("a"))
        scene.shim.signInState { log.append("\($0)") }
        scene.run()
        scene.shim.reset()
        scene.shim.signInState { log.append("\($0)") }
        scene.run()
        #expect(log.entries == ["signedOut", "validToken", "signedOut"] && scene.loader.loadCount == 0)
    }

    @Test func `a handler is released after its call, even if others wait behind it`() throws {
        final class Screen: Sendable {}
        let scene = try ShimScene.holding("a")
        weak let watched = {
            let screen = Screen()
            scene.shim.retrieveToken { _ in withExtendedLifetime(screen) {} }
            return screen
        }()
        #expect(watched != nil)
        for _ in 0..<3 {
            scene.shim.invalidate(.hour("a"))
            scene.call()
        }
        scene.stage.run()
        scene.queue.run()
        #expect(watched == nil)
    }

    @Test(arguments: [true, false])
    func `a loader may get a valid token from the service it loads for, ahead of expiry`(isBehindAnother: Bool) throws {
        let loader = LoaderBox(), scene = ShimScene(loadedBy: loader.tokenLoader)
        loader.shim.withLock { $0 = scene.shim }
        _ = scene.stage.start { [service = scene.service] in await service.replace(with: .hour("a")) }
        scene.clock.advance(by: .seconds(3_000))
        let events = scene.service.events()
        scene.call()
        if !isBehindAnother { scene.queue.run() }
        scene.run(times: 3)
        #expect(scene.log.entries == ["a"])
        let told = scene.stage.start {
            var iterator = events.makeAsyncIterator()
            return [await iterator.next()?.name, await iterator.next()?.name]
        }
        #expect(told.value == [.refreshStarted, .loadSucceeded])
        loader.shim.withLock { $0 = nil }
    }

    @Test func `a failure reaches every handler once, and the next call tries again`() throws {
        let scene = ShimScene()
        scene.call("1")
        scene.call("2")
        try scene.load().fail(with: ScriptedFailure.transient)
        scene.run()
        #expect(scene.log.entries == ["1 loadFailed", "2 loadFailed"])
        scene.call("3")
        try scene.deliver("a")
        #expect(scene.log.entries.last == "3 a")
    }

    // Museum 20, with callbacks.
    @Test func `17: a loader that asks the service it loads for gets a clear error`() throws {
        let loader = LoaderBox(), scene = ShimScene(loadedBy: loader.tokenLoader)
        loader.shim.withLock { $0 = scene.shim }
        scene.shim.retrieveToken { [log = scene.log] in log.append("\($0)") }
        scene.run(times: 3)
        #expect(scene.log.entries.count == 1 && scene.log.entries[0].contains("from its own service"))
        loader.shim.withLock { $0 = nil }
    }

    @Test(.timeLimit(.minutes(10)))
    func `17: loaders that ask each other through their shims get a clear error`() throws {
        let stage = Stage(), queue = ManualQueue(), log = Log<String>()
        let loaders = [LoaderBox(), LoaderBox()]
        let shims = loaders.map { loader in
            let core = TokenService(
                environment: .driven(by: stage, clock: ManualClock()), loader: loader.tokenLoader)
            return AccessTokenService(service: core, enqueue: queue.async)
        }
        for number in 0...1 { loaders[number].shim.withLock { $0 = shims[1 - number] } }
        shims[0].retrieveToken { log.append("\($0)") }
        for _ in 0..<5 {
            stage.run()
            queue.run()
        }
        #expect(log.entries.count == 1 && log.entries[0].contains("from its own service"))
        for loader in loaders { loader.shim.withLock { $0 = nil } }
    }

    @Test func `17: a load that already has its answer from a service may be waited for by that service`() {
        let stage = Stage(), queue = ManualQueue(), log = Log<String>(), gate = SingleResult<Void>()
        let shims = Lock<[AccessTokenService]>([])
        @Sendable func ask(_ number: Int) async throws -> AccessToken {
            let shim = shims.withLock { $0[number] }
            return try await withCheckedThrowingContinuation { continuation in
                shim.retrieveToken { continuation.resume(with: $0) }
            }
        }
        let first = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in
            _ = try await ask(1)
            try await gate.value()
            return .hour("a")
        }
        let second = TokenService(environment: .driven(by: stage, clock: ManualClock())) { previous in
            previous == nil ? .hour("b") : try await ask(0)
        }
        shims.withLock { $0 = [first, second].map { AccessTokenService(service: $0, enqueue: queue.async) } }
        func run() {
            for _ in 1...3 {
                stage.run()
                queue.run()
            }
        }
        shims.withLock { $0[0] }.retrieveToken { log.append("1 \(ShimScene.text($0))") }
        run()
        shims.withLock { $0[1] }.invalidate(.hour("b"))
        shims.withLock { $0[1] }.retrieveToken { log.append("2 \(ShimScene.text($0))") }
        run()
        #expect(log.entries.isEmpty)
        gate.complete(with: .success(()))
        run()
        #expect(log.entries == ["1 a", "2 a"])
        shims.withLock { $0 = [] }
    }

    @Test
    func `17: a call inside a load doesn't wait for that load if an operation in front keeps it from being a hit`() throws {
        let token = AccessToken.hour("a"), box = Lock<AccessTokenService?>(nil), loads = Lock(0)
        let loader = ClosureTokenLoader(isRepeatable: false) { _ in
            let number = loads.withLock { loads in
                loads += 1
                return loads
            }
            guard number == 2, let shim = box.withLock({ $0 }) else { return number == 1 ? token : .hour("b") }
            return try await withCheckedThrowingContinuation { continuation in
                shim.invalidate(token)
                shim.retrieveToken { continuation.resume(with: $0) }
            }
        }
        let scene = ShimScene(loadedBy: loader)
        box.withLock { $0 = scene.shim }
        scene.shim.retrieveToken { _ in }
        scene.run(times: 3)
        scene.clock.advance(by: .seconds(3_000))
        for _ in 1...2 {
            scene.call()
            scene.run(times: 3)
        }
        // The error arrives at once, not when the load's time is over.
        #expect(scene.log.entries == ["a", "loadFailed"])
        box.withLock { $0 = nil }
    }

    private final class LoaderBox: AccessTokenLoader {
        let shim = Lock<AccessTokenService?>(nil)
        func load(then handler: @escaping Handler) { shim.withLock { $0 }?.retrieveToken(then: handler) }
    }

    @Test func `the first answer counts if a loader answers twice before it returns, and again later`() {
        let loader = HastyLoader(), scene = ShimScene(loadedBy: loader.tokenLoader)
        scene.call()
        scene.stage.run()
        loader.handler.withLock { $0 }?(.success(.hour("third")))
        scene.run()
        #expect(scene.log.entries == ["first"] && scene.service.cachedToken?.value == "first")
    }

    private final class HastyLoader: AccessTokenLoader {
        let handler = Lock<Handler?>(nil)

        func load(then handler: @escaping Handler) {
            self.handler.withLock { $0 = handler }
            handler(.success(.hour("first")))
            handler(.success(.hour("second")))
        }
    }

    @Test func `one task takes several misses in a row to the actor`() {
        let scene = ShimScene()
        for _ in 0..<100 { scene.call() }
        #expect(scene.stage.pending == 1)
        scene.shim.invalidate(.hour("other"))
        #expect(scene.stage.pending == 1)
    }

    @Test func `a miss called while others are taken to the actor follows them`() throws {
        let loader = ScriptedLoader(), meanwhile = Meanwhile()
        let scene = ShimScene(loader, loadedBy: loader, clock: OddClock(ManualClock(), onReading: meanwhile.read))
        scene.shim.invalidate(.hour("other"))
        // The call runs on the actor, in the middle of the invalidation; nothing else changes the line afterwards.
        meanwhile.atReading(1) { scene.call() }
        try scene.deliver("a")
        #expect(scene.log.entries == ["a"])
    }

    @Test func `15: the most urgent waiting miss raises the load's priority`() throws {
        let scene = ShimScene(), callers = Stage()
        for priority in [TaskPriority.low, .high, .low] {
            _ = callers.start(priority: priority) { [shim = scene.shim] in shim.retrieveToken { _ in } }
        }
        #expect(try scene.load().priority == .high)
    }

    @Test func `15: a miss that is more urgent than the running load raises its priority`() throws {
        // Use an async loader: one with a handler can't observe its task's priority.
        let loader = ScriptedLoader(), scene = ShimScene(loader, loadedBy: loader), shim = scene.shim
        _ = scene.stage.start(priority: .low) { shim.retrieveToken { _ in } }
        let load = try scene.load()
        #expect(load.priority == .low)
        _ = scene.stage.start(priority: .high) { shim.retrieveToken { _ in } }
        #expect(load.priority == .high)
    }
}
