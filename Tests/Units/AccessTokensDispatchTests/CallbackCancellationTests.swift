import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Testing
import TokenServiceConcurrency

/// An object that a handler captures, such as a screen.
private final class Screen: Sendable {}

@Suite("Guarantees 7 and 13: a cancelled call releases its handler, and leaves all others alone")
struct CallbackCancellationTests {
    /// How a call is made.
    enum Form: CaseIterable {
        case plain, limited, insteadOfRefused
    }

    private func begin(
        _ form: Form, _ shim: AccessTokenService, then log: @escaping AccessTokenService.Handler
    ) -> AccessTokenService.Call {
        switch form {
        case .plain: shim.retrieveToken(then: log)
        case .limited: shim.retrieveToken(within: .seconds(20), then: log)
        case .insteadOfRefused: shim.retrieveToken(insteadOf: .hour("a"), then: log)
        }
    }

    /// When a call is cancelled: before its errand leaves, while it waits for the load, and when its answer waits for its turn.
    @Test(arguments: Form.allCases, 0...2)
    func `a cancelled call's handler is released at once and never called`(form: Form, steps: Int) throws {
        let scene = try ShimScene.holding("a"), log = scene.log
        scene.shim.invalidate(.hour("a"))
        weak var watched: Screen?
        let call = {
            let screen = Screen()
            watched = screen
            return begin(form, scene.shim) { _ in withExtendedLifetime(screen) { log.append("cancelled") } }
        }()
        scene.call("other")
        if steps > 0 { scene.stage.run() }
        if steps > 1 {
            try scene.load().succeed(with: .hour("b"))
            scene.stage.run()
        }
        #expect(watched != nil)
        call.cancel()
        #expect(watched == nil)
        if steps < 2 { try scene.load().succeed(with: .hour("b")) }
        scene.run(times: 2)
        call.cancel()
        #expect(log.entries == ["other b"] && scene.loader.loadCount == 2)
    }

    @Test func `a hit that is cancelled before its delivery isn't delivered`() throws {
        let scene = try ShimScene.holding("a"), log = scene.log
        scene.call("1")
        let calls = (2...4).map { number in scene.shim.retrieveToken { _ in log.append("\(number)") } }
        calls[0].cancel()
        calls[2].cancel()
        scene.queue.run()
        #expect(log.entries == ["1 a", "3"])
    }

    @Test func `a handler can cancel other calls of its own delivery`() throws {
        let scene = try ShimScene.holding("a"), log = scene.log, calls = Lock<[AccessTokenService.Call]>([])
        for number in 0..<5 {
            let call = scene.shim.retrieveToken { _ in
                log.append("\(number)")
                // The one that runs, one that has run, and two that have yet to.
                if number == 1 { for index in [0, 1, 2, 4] { calls.withLock { $0[index] }.cancel() } }
            }
            calls.withLock { $0.append(call) }
        }
        scene.queue.run()
        #expect(log.entries == ["0", "1", "3"])
        scene.call("later")
        scene.queue.run()
        #expect(log.entries.last == "later a")
    }

    @Test(arguments: [false, true])
    func `a call whose limit has passed can still be cancelled`(isBeside: Bool) {
        let scene = ShimScene(), log = scene.log
        scene.call("first")
        // Without any time left a call never gets a place in the line.
        let late = scene.shim.retrieveToken(within: isBeside ? .zero : .seconds(1)) { _ in log.append("late") }
        let other = scene.shim.retrieveToken(within: isBeside ? .zero : .seconds(1)) { _ in log.append("other") }
        scene.stage.run()
        scene.clock.advance(by: .seconds(1))
        scene.stage.run()
        late.cancel()
        scene.queue.run()
        #expect(log.entries == ["other"])
        other.cancel()
    }

    @Test func `1,000 closed screens waiting for a silent server leave no handlers behind`() throws {
        let scene = ShimScene()
        weak var watched: Screen?
        let calls = {
            let screen = Screen()
            watched = screen
            return (0..<1_000).map { number in
                scene.shim.retrieveToken(within: .seconds(10 + number % 3)) { _ in withExtendedLifetime(screen) {} }
            }
        }()
        _ = try scene.load()
        for call in calls { call.cancel() }
        #expect(watched == nil)
        scene.run()
        scene.stage.run()
        #expect(scene.log.entries.isEmpty)
        // Only the load's own limit is left.
        #expect(scene.clock.sleeperCount == 1)
    }

    @Test func `calls that are all cancelled on their way to the actor start no load`() {
        let scene = ShimScene()
        let calls = (0..<3).map { _ in scene.shim.retrieveToken { _ in } }
        for call in calls { call.cancel() }
        scene.run()
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `a load goes on after its last call was cancelled, and its token is kept`() throws {
        let scene = ShimScene()
        let call = scene.shim.retrieveToken { _ in }
        let load = try scene.load()
        call.cancel()
        load.succeed(with: .hour("a"))
        scene.run()
        #expect(scene.service.cachedToken?.value == "a")
    }

    @Test func `a cancelled call starts no load after the restore, like a cancelled async caller`() throws {
        let store = ScriptedStore(), stage = Stage(), queue = ManualQueue(), loader = ScriptedLoader()
        let service = TokenService(store: store, environment: .driven(by: stage, clock: ManualClock()), loader: loader)
        let shim = AccessTokenService(service: service, enqueue: queue.async)
        store.hold()
        let call = shim.retrieveToken { _ in }
        stage.run()
        call.cancel()
        store.release()
        stage.run()
        #expect(store.log == ["load"] && loader.loadCount == 0, "after the restore only a caller begins a load")
    }

    @Test func `a cancelled call no longer holds back the calls behind it`() throws {
        let store = ScriptedStore(), stage = Stage(), queue = ManualQueue(), log = Log<String>()
        let service = TokenService(store: store, environment: .driven(by: stage, clock: ManualClock())) { _ in .hour("a") }
        let shim = AccessTokenService(service: service, enqueue: queue.async)
        store.hold()
        let call = shim.retrieveToken { _ in log.append("cancelled") }
        stage.run()
        shim.retryNow { log.append("retried") }
        stage.run()
        queue.run()
        #expect(log.entries.isEmpty)
        call.cancel()
        queue.run()
        #expect(log.entries == ["retried"])
    }

    @Test func `a refusal counts even if its call is cancelled`() throws {
        let scene = try ShimScene.holding("a")
        scene.shim.retrieveToken(insteadOf: .hour("a")) { _ in }.cancel()
        scene.run()
        #expect(scene.service.cachedToken == nil && scene.loader.loadCount == 1)
    }

    @Test func `17: a load that has cancelled its call of another service may be waited for by that service`() throws {
        let box = Lock<AccessTokenService?>(nil), gate = SingleResult<Void>(), log = Log<String>()
        let loader = ClosureTokenLoader(isRepeatable: false) { _ in
            // It asks another service, and changes its mind.
            box.withLock { $0 }?.retrieveToken { _ in }.cancel()
            try await gate.value()
            return .hour("a")
        }
        let scene = ShimScene(loadedBy: loader)
        let neighbour = TokenService(environment: .driven(by: scene.stage, clock: scene.clock)) { [service = scene.service] _ in
            try await service.retrieveToken()
        }
        let shim = AccessTokenService(service: neighbour, enqueue: scene.queue.async)
        box.withLock { $0 = shim }
        scene.call("own")
        scene.run()
        shim.retrieveToken { log.append(ShimScene.text($0)) }
        scene.run()
        gate.complete(with: .success(()))
        scene.run(times: 2)
        #expect(scene.log.entries == ["own a"] && log.entries == ["a"])
        box.withLock { $0 = nil }
    }

    @Test func `a method without a result fits a protocol and a function type`() throws {
        let scene = try ShimScene.holding("a"), log = scene.log
        let retrieve: (@escaping AccessTokenService.Handler) -> Void = scene.shim.retrieveToken(then:)
        retrieve { _ in log.append("function") }
        let provider: any TokenProvider = scene.shim
        provider.retrieveToken { _ in log.append("protocol") }
        scene.queue.run()
        #expect(log.entries == ["function", "protocol"])
    }

    @Test(.timeLimit(.minutes(10)))
    func `on real threads each call is answered once or cancelled, and no handler stays`() async {
        let queue = DispatchQueue(label: "test"), answered = Log<Int>(), released = Log<Int>()
        let service = TokenService { _ in .hour("a") }, shim = AccessTokenService(service: service, queue: queue)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for round in 0..<200 {
                        let handler = Handler(thread * 200 + round, released)
                        let call = shim.retrieveToken { _ in answered.append(handler.number) }
                        if round % 2 == 0 { call.cancel() }
                        if round % 5 == 0 { shim.retrieveToken(insteadOf: .hour("a")) { _ in }.cancel() }
                        if round % 20 == 0 { shim.reset() }
                    }
                }
            }
        }
        await withCheckedContinuation { done in shim.reset { _ in done.resume() } }
        queue.sync {}
        #expect(Set(answered.entries).count == answered.entries.count)
        #expect(Set(answered.entries).isSuperset(of: (0..<1_600).filter { $0 % 2 == 1 }))
        #expect(released.entries.sorted() == Array(0..<1_600))
    }

    private final class Handler: Sendable {
        let number: Int, released: Log<Int>

        init(_ number: Int, _ released: Log<Int>) { (self.number, self.released) = (number, released) }
        deinit { released.append(number) }
    }
}

private protocol TokenProvider {
    func retrieveToken(then handler: @escaping AccessTokenService.Handler)
}

extension AccessTokenService: TokenProvider {}
