import AccessTokens

/// Museum 26: the flight's key ignores the scope: the wrong token.
///
/// One service for all scopes, with a token for each; but one load at a time, whatever it loads. A reader's load is under
/// way; a writer asks, finds a load, joins it, and gets a token that may only read.
///
/// Shipped: Duende foss#360. Sits: in `load`, which is one where `tokens` are many.
actor ScopeBlindTokenService {
    private let makeLoader: @Sendable (_ scope: String) -> any TokenLoader
    private let executor: any TaskExecutor
    private let clock: any Clock<Duration>
    private var tokens: [String: KeptToken] = [:]
    private var load: Task<AccessToken, any Error>?

    init(
        clock: any Clock<Duration>, executor: any TaskExecutor, loader: @escaping @Sendable (_ scope: String) -> any TokenLoader
    ) {
        self.clock = clock
        self.executor = executor
        makeLoader = loader
    }

    func retrieveToken(scope: String) async throws -> AccessToken {
        if let token = tokens[scope]?.valid { return token }
        // One load for all callers: also for those who want another token.
        if let load { return try await load.value }
        let loader = makeLoader(scope)
        let load = Task(executorPreference: executor) { try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let loaded = try await load.value
        tokens[scope, default: KeptToken(clock: clock)].keep(loaded)
        return loaded
    }
}
