import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import TokenServiceConcurrency

/// A queue whose blocks run when the test says so, in their order.
final class ManualQueue: Sendable {
    private let blocks = Lock<[@Sendable () -> Void]>([])
    let dispatches = Log<Void>()

    func async(_ block: @escaping @Sendable () -> Void) {
        dispatches.append(())
        blocks.withLock { $0.append(block) }
    }

    func run() {
        while let block = blocks.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { block() }
    }
}

/// The shim with everything controlled by the test: callers, queue, time and loader.
struct ShimScene {
    let stage = Stage()
    let clock = ManualClock()
    let queue = ManualQueue()
    let loader: ScriptedLoader
    let service: TokenService
    let shim: AccessTokenService
    let log = Log<String>()

    init(isRepeatable: Bool = false) {
        let loader = ScriptedLoader(isRepeatable: isRepeatable)
        self.init(loader, loadedBy: loader.tokenLoader)
    }

    /// A scene whose service has another loader.
    init(_ loader: ScriptedLoader = ScriptedLoader(), loadedBy other: some TokenLoader, clock odd: OddClock? = nil) {
        self.loader = loader
        service = TokenService(environment: .driven(by: stage, clock: odd ?? clock), loader: other)
        shim = AccessTokenService(service: service, enqueue: queue.async)
    }

    /// Calls, and logs the answer under a name.
    func call(_ name: String = "", then next: @escaping @Sendable () -> Void = {}) {
        shim.retrieveToken { [log] result in
            log.append("\(name)\(name.isEmpty ? "" : " ")\(Self.text(result))")
            next()
        }
    }

    /// The same with a limit.
    func call(_ name: String, within limit: Duration?) {
        shim.retrieveToken(within: limit) { [log] in log.append("\(name) \(Self.text($0))") }
    }

    /// Advances the clock, and runs the tasks that waited for it.
    func pass(_ time: Duration) {
        clock.advance(by: time)
        run()
    }

    /// Runs actor and queue until all tasks wait; repeatedly, if handlers and loads make further calls.
    func run(times: Int = 1) {
        for _ in 1...times {
            stage.run()
            queue.run()
        }
    }

    func load() throws -> ScriptedLoader.Call {
        stage.run()
        let next = stage.start { [loader] in try await loader.nextCall() }
        guard let call = next.value else {
            next.cancel()
            stage.run()
            throw Missing()
        }
        return call
    }

    func deliver(_ name: String) throws {
        try load().succeed(with: .hour(name))
        run()
    }

    static func holding(_ name: String) throws -> ShimScene {
        let scene = ShimScene()
        scene.shim.retrieveToken { _ in }
        try scene.deliver(name)
        return scene
    }

    static func text(_ result: Result<AccessToken, any Error>) -> String {
        switch result {
        case .success(let token): token.value
        case .failure(let error as TokenServiceError): "\(error.code)"
        case .failure(let error): "\(error)"
        }
    }

    struct Missing: Error {}
}

extension AccessToken {
    static func hour(_ name: String) -> AccessToken { AccessToken(name, lifetime: .seconds(3600)) }
}
