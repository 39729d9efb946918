import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Museum 23: the clock is moved backwards, and an expired token looks valid.
///
/// A token arrives at nine, good until ten by the clock on the wall. The network corrects that clock, which was two hours
/// fast: it is seven. For three hours the service hands out a token that the server has stopped to accept after one.
///
/// Shipped: wall-clock peers. Sits: wherever a `Date` is compared with a later reading of the same clock: it may be earlier.
actor WallClockTokenService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private let wallClock: @Sendable () -> Date
    private var kept: (token: AccessToken, expiry: Date)?
    private var load: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, wallClock: @escaping @Sendable () -> Date, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        self.wallClock = wallClock
    }

    func retrieveToken() async throws -> AccessToken {
        // The race: the person, or the network, sets the clock between this reading and the one below.
        if let kept, wallClock() < kept.expiry { return kept.token }
        if let load { return try await load.value }
        let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let token = try await load.value
        let lifetime = (token.lifetime ?? .seconds(3600)) / .seconds(1)
        kept = (token, wallClock().addingTimeInterval(lifetime))
        return token
    }
}
