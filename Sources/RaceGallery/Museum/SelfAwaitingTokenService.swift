import AccessTokens

/// Museum 20: the loader's own request asks the service for a token: deadlock.
///
/// All requests of the app go through one client, which asks the service for a token and adds it. So do the loader's: to
/// learn where the token endpoint is, it asks for the server's metadata through that client, which asks the service, which
/// joins the load that runs: this one. It waits for itself, and everybody for it.
///
/// Shipped: vellum PR#22311; GTMAppAuth [S]. Sits: in joining `load` without asking whose task asks. It hides as long as
/// the metadata is cached.
actor SelfAwaitingTokenService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private var token: KeptToken
    private var load: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        // Nobody asks whether it is the load itself that wants to wait for the load.
        if let load { return try await load.value }
        let load = Task(executorPreference: executor) { [loader] in try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let loaded = try await load.value
        token.keep(loaded)
        return loaded
    }
}
