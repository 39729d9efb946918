import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 56, with handlers") struct CallbackDemandTests {
    private func demand(_ scene: ShimScene, _ minimum: Duration) {
        scene.shim.retrieveToken(validFor: minimum) { [log = scene.log] in log.append("demand \(ShimScene.text($0))") }
    }

    private func reload(_ scene: ShimScene) {
        scene.shim.reloadToken { [log = scene.log] in log.append("reload \(ShimScene.text($0))") }
    }

    private func scene() throws -> ShimScene {
        let scene = ShimScene()
        scene.call("first")
        try scene.load().succeed(with: AccessToken("a", lifetime: .seconds(3600)))
        scene.run(times: 3)
        scene.pass(.seconds(2000))
        return scene
    }

    @Test func `56: a handler gets a token that is good for so long, and no other handler waits for it`() throws {
        let scene = try scene()
        demand(scene, .seconds(3000))
        scene.call("later")
        scene.run(times: 3)
        #expect(scene.log.entries == ["first a", "later a"])
        try scene.load().succeed(with: AccessToken("b", lifetime: .seconds(3600)))
        scene.run(times: 3)
        #expect(scene.log.entries.last == "demand b" && scene.log.entries.count == 3)
    }

    @Test func `56: a handler that insists on a load joins no load that began before its call`() throws {
        let scene = ShimScene()
        scene.call("first")
        let early = try scene.load()
        reload(scene)
        scene.run(times: 3)
        early.succeed(with: AccessToken("a", lifetime: .seconds(3600)))
        scene.run(times: 3)
        #expect(scene.log.entries == ["first a"])
        try scene.load().succeed(with: AccessToken("b", lifetime: .seconds(3600)))
        scene.run(times: 3)
        #expect(scene.log.entries == ["first a", "reload b"])
    }

    @Test func `56: calls with a demand from before a sign-out get the reset error`() throws {
        let scene = try scene()
        demand(scene, .seconds(3000))
        reload(scene)
        scene.shim.reset { _ in }
        scene.run(times: 5)
        #expect(scene.log.entries.dropFirst().sorted() == ["demand reset", "reload reset"])
    }

    @Test(arguments: [true, false]) func `56: a loader that would wait for itself gets an error at once`(insists: Bool) {
        let stage = Stage(), clock = ManualClock(), queue = ManualQueue(), loader = AskingLoader(insists: insists)
        let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader.tokenLoader)
        let shim = AccessTokenService(service: service, enqueue: queue.async), answers = Log<String>()
        loader.neighbour.withLock { $0 = shim }
        shim.retrieveToken { result in
            guard case .failure(let error as TokenServiceError) = result else { return }
            answers.append("\(error.underlying.map { "\(type(of: $0))" } ?? "nothing")")
        }
        for _ in 0..<6 {
            stage.run()
            queue.run()
        }
        #expect(answers.entries == ["TokenServiceError"] && clock.now.offset == .zero)
        loader.neighbour.withLock { $0 = nil }
    }
}

/// A loader that asks its own service.
private final class AskingLoader: AccessTokenLoader {
    let neighbour = Lock<AccessTokenService?>(nil)
    let insists: Bool

    init(insists: Bool) { self.insists = insists }

    func load(then handler: @escaping Handler) {
        let shim = neighbour.withLock { $0 }
        if insists { shim?.reloadToken(then: handler) } else { shim?.retrieveToken(validFor: .seconds(1), then: handler) }
    }
}
