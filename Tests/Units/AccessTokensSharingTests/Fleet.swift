import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensSharing

/// Several services that share one grant, each as if in its own process, on one stage with one clock and one server.
struct Fleet {
    let stage = Stage()
    let clock = ManualClock()
    let store: any SharedTokenStore
    let memory = InMemorySharedTokenStore()
    let loaders: [ScriptedLoader]
    let services: [TokenService]
    let discarded = Log<String>()

    /// - Parameter store: Returns the services' store, given the store in memory.
    init(
        _ count: Int = 2, isRepeatable: Bool = false, sharing: TokenSharing = TokenSharing(),
        store: (InMemorySharedTokenStore) -> any SharedTokenStore = { $0 }
    ) {
        let store = store(memory)
        self.store = store
        let loaders = (0..<count).map { _ in ScriptedLoader(isRepeatable: isRepeatable) }
        self.loaders = loaders
        let start = clock.now
        let environment = TokenService.Environment.driven(
            by: stage, clock: clock,
            wallClock: { [clock] in Date(timeIntervalSinceReferenceDate: start.duration(to: clock.now) / .seconds(1)) }, seed: 1)
        services = loaders.map { [discarded] loader in
            TokenService(
                sharedStore: store, sharing: sharing, environment: environment,
                onDiscard: { discarded.append("\($0.token.value) \($0.reason)") }, loader: loader)
        }
    }

    func call(_ index: Int) -> Stage.Player<AccessToken> {
        stage.start { [service = services[index]] in try await service.retrieveToken() }
    }

    func retry(_ index: Int, insteadOf token: AccessToken) -> Stage.Player<AccessToken> {
        stage.start { [service = services[index]] in try await service.retrieveToken(insteadOf: token) }
    }

    func load(_ index: Int) throws -> ScriptedLoader.Call {
        let next = stage.start { [loader = loaders[index]] in try await loader.nextCall() }
        guard let call = next.value else {
            next.cancel()
            stage.run()
            throw Missing()
        }
        return call
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

    func signIn(_ index: Int, with token: AccessToken) -> SessionChange? {
        stage.start { [service = services[index]] in await service.replace(with: token) }.value
    }

    func signOut(_ index: Int) -> SessionChange? {
        stage.start { [service = services[index]] in await service.reset() }.value
    }

    var record: GrantRecord? {
        memory.contents.flatMap { try? GrantRecordFormat.decode($0.bytes) }
    }
}
