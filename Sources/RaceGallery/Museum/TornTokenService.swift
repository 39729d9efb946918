import AccessTokens
import Interleavings

/// Museum 25: token and expiry are read at different moments.
///
/// A caller reads the token, which has expired. A refresh on another thread writes a new token and its expiry. The caller
/// reads the expiry, finds an hour left, and sends the old token.
///
/// Shipped: aws-sdk-go#3448. Sits: in two variables for what is one fact; also with a lock around each of them.
///
/// `@unchecked Sendable`: not safe at all, which is the exhibit; an exploration runs one of its threads at a time.
final class TornTokenService: @unchecked Sendable {
    @Interleaved("the token") private var token = AccessToken?.none
    @Interleaved("the expiry") private var expiry = Duration.zero
    private let loader: any TokenLoader
    private let elapsed: @Sendable () -> Duration

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C) {
        self.loader = loader
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    func retrieveToken() async throws -> AccessToken {
        // The race: a refresh between the first read and the second.
        if let token, elapsed() < expiry { return token }
        let start = elapsed()
        let loaded = try await loader.loadToken(replacing: nil)
        token = loaded
        expiry = start + (loaded.lifetime ?? .seconds(3600))
        return loaded
    }
}
