import AccessTokensHTTP
import AccessTokens
import AccessTokensDispatch
import AccessTokensEtcd
import AccessTokensFiles
import AccessTokensKeys
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings

/// Uses each product of the package for its purpose, and prints the results.
@main struct Consumer {
    static func main() async throws {
        print("AccessTokens:", try await askAtOnce())
        print("AccessTokensDispatch:", try await askWithHandler())
        print("AccessTokensDPoP:", try await proveRequest())
        print("AccessTokensDiscovery:", try await discover())
        print("AccessTokensEtcd:", try await askEtcd())
        print("AccessTokensFiles:", try await restart())
        print("AccessTokensKeys:", try await askForAccounts())
        print("AccessTokensOAuth:", try await askServer())
        print("AccessTokensSharedFiles:", try await shareFile())
        print("AccessTokensSharing:", try await share())
        print("DataLoading:", try await loadData())
        print("AccessTokensTesting:", try await lookFromOtherEnd())
        print("Interleavings:", try await countRaces())
    }

    static func askAtOnce() async throws -> String {
        let server = SimulatedAuthorizationServer()
        let tokens = TokenService(loader: server.loader)
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await tokens.retrieveToken().value } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        return "100 callers, \(server.loadsStarted) load, \(values.count) token"
    }

    static func askWithHandler() async throws -> String {
        let service = AccessTokenService(service: TokenService { _ in AccessToken("a", lifetime: .seconds(60)) })
        let token = try await withCheckedThrowingContinuation { continuation in
            service.retrieveToken { continuation.resume(with: $0) }
        }
        return "a handler got \(token.tokenType)"
    }

    static func restart() async throws -> String {
        let path = FileManager.default.temporaryDirectory.appending(path: "consumer-\(UUID()).token").path
        let server = SimulatedAuthorizationServer()
        _ = try await TokenService(store: FileTokenStore(path: path), loader: server.loader).retrieveToken()
        let second = TokenService(store: FileTokenStore(path: path), loader: server.loader)
        let token = try await second.retrieveToken()
        _ = await second.reset()
        return "\(token.value) after a restart, \(server.loadsStarted) load"
    }

    static func shareFile() async throws -> String {
        let directory = FileManager.default.temporaryDirectory.appending(path: "consumer-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "grant").path, server = SimulatedAuthorizationServer()
        let first = TokenService(sharedStore: SharedFileTokenStore(path: path), loader: server.loader)
        let second = TokenService(sharedStore: SharedFileTokenStore(path: path), loader: server.loader)
        let isSame = try await first.retrieveToken() == second.retrieveToken()
        return "\(isSame ? "one token" : "two tokens") for two stores, \(server.loadsStarted) load"
    }

    static func askForAccounts() async throws -> String {
        let services = TokenServices<String> { account, _ in AccessToken("\(account)'s", lifetime: .seconds(60)) }
        let tokens = [try await services["Anna"].retrieveToken(), try await services["Ben"].retrieveToken()]
        let signOut = await services.reset { $0 == "Anna" }
        let left = services["Ben"].cachedToken?.value ?? "no"
        return "\(tokens.count) tokens, \(signOut.changes.count) sign-out, and \(left) token is left"
    }

    static func share() async throws -> String {
        let server = SimulatedAuthorizationServer(), store = SimulatedSharedStore()
        let first = TokenService(sharedStore: store, loader: server.loader)
        let second = TokenService(sharedStore: store, loader: server.loader)
        let isSame = try await first.retrieveToken() == second.retrieveToken()
        return "\(isSame ? "one token" : "two tokens") for two services, \(server.loadsStarted) load"
    }

    static func askEtcd() async throws -> String {
        struct EmptyEtcd: TokenTransport {
            @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
                TransportResponse(status: 200, body: Data(#"{"header":{"revision":"1"}}"#.utf8))
            }
        }
        guard let url = URL(string: "https://etcd.example:2379") else { return "" }
        let store = try EtcdTokenStore(key: "/tokens/consumer", endpoints: [url], transport: EmptyEtcd())
        return try await store.load() == nil ? "no record yet" : "a record"
    }

    static func lookFromOtherEnd() async throws -> String {
        let loader = ScriptedLoader()
        let tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader)
        async let token = tokens.retrieveToken()
        try await loader.nextCall().succeed(with: AccessToken("scripted"))
        return "answered with \(try await token.value)"
    }

    static func countRaces() async throws -> String {
        let summary = try await explore(.exhaustive(), countsFailures: true) { simulation in
            let cache = NaiveCache()
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) { await cache.token { try? await simulation.clock.sleep(for: .seconds(1)) } }
            }
            try await simulation.settle()
            try simulation.require(await cache.loads == 1, "one load for both")
        }
        return "the naive actor fails in \(summary.failures) of \(summary.schedules) schedules"
    }
}

/// Check, suspend, set.
actor NaiveCache {
    private var value: String?
    private(set) var loads = 0

    func token(_ load: @Sendable () async -> Void) async -> String {
        if let value { return value }
        loads += 1
        await load()
        value = "loaded"
        return "loaded"
    }
}
