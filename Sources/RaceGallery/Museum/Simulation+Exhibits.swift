import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Interleavings

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Common parts of the museum's scenarios: a server, a service and callers that run entirely in the simulation.
extension Simulation {
    /// A server whose answers take a second.
    func server(
        lifetime: Duration? = .seconds(3600), latency: Duration = .seconds(1), keepsOneTokenValid: Bool = true,
        rotates: Bool = false
    ) -> SimulatedAuthorizationServer {
        SimulatedAuthorizationServer(
            clock: seams.clock, tokenLifetime: lifetime, latency: latency, keepsOneTokenValid: keepsOneTokenValid,
            rotatesRefreshTokens: rotates, executor: seams.executor)
    }

    /// The service that has none of the museum's bugs.
    func service(
        policy: RefreshPolicy = RefreshPolicy(), store: (any TokenStore)? = nil, executor: (any TaskExecutor)? = nil,
        wallClock: (@Sendable () -> Date)? = nil, loader: some TokenLoader
    ) -> TokenService {
        TokenService(
            policy: policy, store: store, environment: seams.environment(executor: executor, wallClock: wallClock),
            loader: loader)
    }

    /// Services of many keys that have none of the museum's bugs.
    func services<Key: Hashable & Sendable>(
        keepingIdle limit: Int = 1_000, grant: (@Sendable (Key) -> Key)? = nil,
        loader: @escaping @Sendable (Key) -> any TokenLoader
    ) -> TokenServices<Key> {
        TokenServices(keepingIdle: limit, grant: grant, environment: seams.environment(), loader: loader)
    }

    /// The services of processes that share a grant, and have none of the museum's bugs.
    func processes(_ count: Int, loader: some TokenLoader, signedInWith grant: AccessToken) async -> [TokenService] {
        let store = InMemorySharedTokenStore()
        let wallClock = { @Sendable [clock] in Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) }
        let services = (0..<count).map { _ in
            TokenService(sharedStore: store, environment: seams.environment(wallClock: wallClock), loader: loader)
        }
        await services[0].replace(with: grant)
        return services
    }

    /// Performs a call and logs its result for the diagram.
    @discardableResult
    func ask(_ retrieve: Exhibit.Retrieve, saying reason: String = "asks for a token") async throws -> AccessToken {
        log(reason)
        do {
            let token = try await retrieve()
            log("gets \(token.value)")
            return token
        } catch {
            log("gets an error: \(error)")
            throw error
        }
    }

    /// Spawns callers that all ask at once.
    ///
    /// An error is an allowed outcome; the exhibit checks what must hold.
    @discardableResult
    func callers(_ numbers: ClosedRange<Int>, _ retrieve: @escaping Exhibit.Retrieve) -> [SpawnedTask<AccessToken>] {
        numbers.map { number in spawn("caller \(number)") { [self] in try await ask(retrieve) }.allowingError() }
    }
}

extension AccessToken {
    /// The token with which a service begins, in exhibits that aren't about its first load.
    static let signedIn = AccessToken("token 0", lifetime: .seconds(3600), refreshToken: "grant 0")
}

extension SpawnedTask {
    /// Whether the task ended because it, or the load that it waited for, was cancelled.
    var wasCancelled: Bool {
        get async {
            guard case .failure(let error) = await result else { return false }
            return error is CancellationError || (error as? TokenServiceError)?.underlying is CancellationError
        }
    }
}
