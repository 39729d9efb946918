import AccessTokens

/// Museum 21: a leeway longer than the lifetime makes a busy loop.
///
/// A token is good until a minute before its end: sixty seconds, as everybody uses. One day a server gives tokens that live
/// for half a minute. Each is past its leeway when it arrives; every caller finds none and loads; the server answers each
/// of them, and counts.
///
/// Shipped: gotrue-swift PR#55 with the leeway's sign inverted, so that a token was used a minute beyond its end;
/// gcloud-rust#6678 as here, in a loop. Sits: in `isGood`, in a constant that knows nothing of the token.
actor BusyTokenService {
    private static let leeway = Duration.seconds(60)

    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private let elapsed: @Sendable () -> Duration
    private var kept: (token: AccessToken, expiry: Duration)?
    private var load: Task<AccessToken, any Error>?

    init<C: Clock<Duration>>(loader: some TokenLoader, clock: C, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
    }

    private var isGood: Bool {
        // Whatever its lifetime is: the leeway should be a share of it.
        kept.map { elapsed() < $0.expiry - Self.leeway } ?? false
    }

    func retrieveToken() async throws -> AccessToken {
        if let kept, isGood { return kept.token }
        if let load { return try await load.value }
        let start = elapsed()
        let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let token = try await load.value
        kept = (token, start + (token.lifetime ?? .seconds(3600)))
        return token
    }
}
