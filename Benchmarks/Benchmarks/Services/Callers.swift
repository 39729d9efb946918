import AccessTokens
import AccessTokensDispatch
import Dispatch
import RaceGallery

/// A thing to ask for a token.
typealias Call = @Sendable () async throws -> Void

/// Asks so many times at once, each from a task of its own, and waits for all.
func unstructured(_ callers: Int, _ call: @escaping Call) async throws {
    var tasks: [Task<Void, any Error>] = []
    tasks.reserveCapacity(callers)
    for _ in 0..<callers { tasks.append(Task { try await call() }) }
    for task in tasks { try await task.value }
}

/// The same, with the children of one group.
func grouped(_ callers: Int, _ call: @escaping Call) async throws {
    try await withThrowingDiscardingTaskGroup { group in
        for _ in 0..<callers { group.addTask { try await call() } }
    }
}

/// Waits for what ends in a call of `done`.
func called(_ begin: (_ done: @escaping @Sendable () -> Void) -> Void) async {
    await unsafe withUnsafeContinuation { continuation in begin { unsafe continuation.resume() } }
}

/// A service of each design with a token that is valid for an hour.
struct Warm: Sendable {
    let floor = Floor(AccessToken("warm"))
    let service = TokenService { _ in AccessToken("warm", lifetime: .seconds(3600)) }
    let naive = ReentrantTokenService(loader: WarmLoader())
    let stage3 = ThreadSafeTokenService(loader: WarmLoader())
    let shim: AccessTokenService

    init() async throws {
        shim = AccessTokenService(service: service)
        _ = try await service.retrieveToken()
        _ = try await naive.retrieveToken()
        await called { done in stage3.retrieveToken { _ in done() } }
    }
}

private struct WarmLoader: TokenLoader, AccessTokenLoader {
    var isRepeatable: Bool { false }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        AccessToken("warm", lifetime: .seconds(3600))
    }

    func load(then handler: @escaping Handler) {
        handler(.success(AccessToken("warm", lifetime: .seconds(3600))))
    }
}
