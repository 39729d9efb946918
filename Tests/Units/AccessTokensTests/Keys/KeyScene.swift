import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

/// Services of several keys, with callers and loaders controlled by the test; see `Scene`.
struct KeyScene {
    typealias Caller = Stage.Player<AccessToken>

    let stage = Stage()
    let clock = ManualClock()
    let services: TokenServices<String>
    let stores: ScriptedStores?
    private let loaders: Loaders
    private let made = Log<String>()
    private let discarded = Log<(key: String, grant: DiscardedGrant)>()

    init(
        keepingIdle limit: Int = 1_000, isRepeatable: Bool = false, hasStores: Bool = false,
        grant: (@Sendable (String) -> String)? = nil
    ) {
        let loaders = Loaders(isRepeatable: isRepeatable)
        self.loaders = loaders
        stores = hasStores ? ScriptedStores() : nil
        services = TokenServices(
            keepingIdle: limit, grant: grant, stores: stores,
            environment: .driven(
                by: stage, clock: clock,
                wallClock: { [clock, start = clock.now] in
                    Date(timeIntervalSince1970: start.duration(to: clock.now) / .seconds(1))
                }, seed: 1),
            onDiscard: { [discarded] in discarded.append(($0, $1)) },
            loader: { [made] key in
                made.append(key)
                return loaders[key]
            })
    }

    /// The keys whose services were created, in order.
    var makings: [String] { made.entries }

    /// The tokens that services have given up so far.
    var discards: [String] { discarded.entries.map { "\($0.key): \($0.grant.token.value) \($0.grant.reason)" } }

    func call(_ key: String) -> Caller {
        stage.start { [services] in try await services[key].retrieveToken() }
    }

    /// Returns the next load that began for a key; fails the test if there is none.
    func load(_ key: String) throws -> ScriptedLoader.Call {
        let next = stage.start { [loaders] in try await loaders[key].nextCall() }
        guard let call = next.value else {
            next.cancel()
            stage.run()
            throw Scene.Missing()
        }
        return call
    }

    func loadCount(_ key: String) -> Int { loaders[key].loadCount }

    func succeed(_ key: String, with token: AccessToken) throws {
        try load(key).succeed(with: token)
        stage.run()
    }

    func succeed(_ call: ScriptedLoader.Call, with token: AccessToken) {
        call.succeed(with: token)
        stage.run()
    }

    func fail(_ key: String, with error: any Error = ScriptedFailure.transient) throws {
        try load(key).fail(with: error)
        stage.run()
    }

    /// Loads a token for a key.
    func hold(_ token: AccessToken, for key: String) throws {
        _ = call(key)
        try succeed(key, with: token)
    }

    func advance(by duration: Duration) {
        clock.advance(by: duration)
        stage.run()
    }

    func perform(_ key: String, _ body: @escaping @Sendable (TokenService) async -> Void) {
        _ = stage.start { [services] in await body(services[key]) }
    }

    func signOut(where isMeant: @escaping @Sendable (String) -> Bool) -> Stage.Player<SessionChanges<String>> {
        stage.start { [services] in await services.reset(where: isMeant) }
    }

    /// Busy, idle and released services.
    var counts: [Int] { [services.counts.busy, services.counts.idle, services.counts.released] }
}

/// A loader for each key, which outlives the key's service.
final class Loaders: Sendable {
    private let loaders = Lock<[String: ScriptedLoader]>([:])
    private let isRepeatable: Bool

    init(isRepeatable: Bool) {
        self.isRepeatable = isRepeatable
    }

    subscript(key: String) -> ScriptedLoader {
        loaders.withLock { loaders in
            let loader = loaders[key] ?? ScriptedLoader(isRepeatable: isRepeatable)
            loaders[key] = loader
            return loader
        }
    }
}

/// A scripted store for each key, and a list of keys that waits and fails when the test says so.
final class ScriptedStores: TokenStores {
    private let stores = Lock<[String: ScriptedStore]>([:])
    /// Held and failed like a store's `load`.
    let list = ScriptedStore()
    /// Called before each key in the list.
    let pace = Lock<(@Sendable () async throws -> Void)?>(nil)

    subscript(key: String) -> ScriptedStore {
        stores.withLock { stores in
            let store = stores[key] ?? ScriptedStore()
            stores[key] = store
            return store
        }
    }

    func store(for key: String) -> any TokenStore { self[key] }

    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (String) -> Void) async throws {
        _ = try await list.load()
        for key in stores.withLock({ $0 }).filter({ $0.value.contents != nil }).keys.sorted() {
            try await pace.withLock { $0 }?()
            body(key)
        }
    }
}
