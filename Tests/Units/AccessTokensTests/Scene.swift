import AccessTokens
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

/// One service controlled by the test: its callers, its time and its loader.
///
/// Nothing runs by itself: each step runs until all tasks wait, so that a test can see that a caller still waits.
struct Scene {
    typealias Caller = Stage.Player<AccessToken>

    let stage = Stage()
    let clock = ManualClock()
    let loader: ScriptedLoader
    let service: TokenService
    private let discarded = Log<DiscardedGrant>()

    /// - Parameters:
    ///   - loadStage: Where the loader and the store run; `nil`: on the scene's stage.
    ///   - clock: Returns the service's clock, given the scene's.
    init(
        isRepeatable: Bool = false, endsWhenCancelled: Bool = false, policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil, seed: UInt64 = 1, loadStage: Stage? = nil, clock odd: OddClock.Fault? = nil
    ) {
        loader = ScriptedLoader(isRepeatable: isRepeatable, endsWhenCancelled: endsWhenCancelled)
        let start = clock.now
        var environment = TokenService.Environment.driven(
            by: stage, clock: clock,
            wallClock: { [clock] in Date(timeIntervalSince1970: start.duration(to: clock.now) / .seconds(1)) }, seed: seed)
        if let loadStage { environment.loadExecutor = loadStage }
        if let odd { environment.clock = OddClock(clock, fault: odd) }
        service = TokenService(
            policy: policy, store: store, environment: environment, onDiscard: { [discarded] in discarded.append($0) },
            loader: loader)
    }

    /// The tokens that the service has given up so far: each one's string and the reason.
    var discards: [String] { discarded.entries.map { "\($0.token.value) \($0.reason)" } }

    /// Starts a caller, and runs until it has its answer or waits.
    func call(within limit: Duration? = nil) -> Caller {
        stage.start { [service] in try await service.retrieveToken(within: limit) }
    }

    func calls(_ count: Int) -> [Caller] {
        (0..<count).map { _ in call() }
    }

    /// Returns the next load that began; fails the test if there is none.
    func load() throws -> ScriptedLoader.Call {
        let next = stage.start { [loader] in try await loader.nextCall() }
        guard let call = next.value else {
            next.cancel()
            stage.run()
            throw Missing()
        }
        return call
    }

    /// Answers the next load with a token.
    @discardableResult
    func deliver(_ token: AccessToken) throws -> AccessToken {
        try load().succeed(with: token)
        stage.run()
        return token
    }

    func succeed(_ call: ScriptedLoader.Call, with token: AccessToken) {
        call.succeed(with: token)
        stage.run()
    }

    func fail(_ call: ScriptedLoader.Call, with error: any Error = ScriptedFailure.transient) {
        call.fail(with: error)
        stage.run()
    }

    func advance(by duration: Duration) {
        clock.advance(by: duration)
        stage.run()
    }

    func perform(_ body: @escaping @Sendable (TokenService) async throws -> Void) {
        _ = stage.start { [service] in try await body(service) }
    }

    /// Returns the events that a stream has delivered so far.
    func told(by events: AsyncStream<TokenEvent>) -> [TokenEvent] {
        let log = Log<TokenEvent>()
        let reader = stage.start { for await event in events { log.append(event) } }
        reader.cancel()
        stage.run()
        return log.entries
    }

    /// Starts a sign-out, and runs until it has ended or waits for the store.
    func signOut() -> Stage.Player<SessionChange> {
        stage.start { [service] in await service.reset() }
    }

    /// A sign-in, run likewise.
    func signIn(with token: AccessToken) -> Stage.Player<SessionChange> {
        stage.start { [service] in await service.replace(with: token) }
    }

    /// Lets the held operations of a store continue.
    func release(_ store: ScriptedStore) {
        store.release()
        stage.run()
    }

    func invalidate(_ token: AccessToken) { perform { await $0.invalidate(token) } }
    func replace(with token: AccessToken) { perform { await $0.replace(with: token) } }
    func reset() { perform { _ = await $0.reset() } }
    func retryNow() { perform { await $0.retryNow() } }

    /// Returns a scene whose service has a token with this lifetime.
    static func holding(
        _ token: AccessToken, isRepeatable: Bool = false, policy: RefreshPolicy = RefreshPolicy()
    ) throws -> Scene {
        let scene = Scene(isRepeatable: isRepeatable, policy: policy)
        let caller = scene.call()
        try scene.deliver(token)
        guard caller.value == token else { throw Missing() }
        return scene
    }

    struct Missing: Error {}
}

extension Stage.Player {
    /// The service's error code, if the caller got one.
    var code: TokenServiceError.Code? { (error as? TokenServiceError)?.code }

    /// When the service may ask again, in seconds of the scene's clock.
    var retryAt: Double? { (error as? TokenServiceError)?.retryAt?.timeIntervalSince1970 }
}

extension AccessToken {
    static func hour(_ name: String) -> AccessToken { AccessToken(name, lifetime: .seconds(3600)) }

    /// The same with a refresh token.
    static func granted(_ name: String, by grant: String? = nil) -> AccessToken {
        AccessToken(name, lifetime: .seconds(3600), refreshToken: grant ?? "\(name)'s grant")
    }
}
