import AccessTokens
import AccessTokensTesting
import Interleavings

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What the museum's scenarios have in common: a server and a service that live in the simulation altogether.
extension Simulation {
    /// A server whose answers take a second.
    func server(
        lifetime: Duration? = .seconds(3600), latency: Duration = .seconds(1), keepsOneTokenValid: Bool = true,
        rotates: Bool = false
    ) -> SimulatedAuthorizationServer {
        SimulatedAuthorizationServer(
            clock: clock, tokenLifetime: lifetime, latency: latency, keepsOneTokenValid: keepsOneTokenValid,
            rotatesRefreshTokens: rotates, executor: taskExecutor)
    }

    /// The service that has none of the museum's bugs.
    func service(
        policy: RefreshPolicy = RefreshPolicy(), store: (any TokenStore)? = nil, executor: (any TaskExecutor)? = nil,
        wallClock: @escaping @Sendable () -> Date = { Date(timeIntervalSince1970: 0) }, loader: some TokenLoader
    ) -> TokenService {
        TokenService(
            policy: policy, store: store,
            environment: .driven(by: executor ?? taskExecutor, clock: clock, wallClock: wallClock, seed: 1),
            loader: narrated(loader))
    }

    /// A caller's part: it asks, and the diagram shows what it gets.
    @discardableResult
    func ask(
        _ retrieve: @Sendable () async throws -> AccessToken, saying reason: String = "asks for a token"
    ) async throws -> AccessToken {
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
}
