package import AccessTokens

/// The design that most async code ends with: an actor keeps the load's `Task`, and every caller awaits its value.
package actor AwaitedTaskService {
    private let loader: any TokenLoader
    private var token: AccessToken?
    private var load: Task<AccessToken, any Error>?

    package init(loader: some TokenLoader) {
        self.loader = loader
    }

    package func retrieveToken() async throws -> AccessToken {
        if let token { return token }
        if let load { return try await load.value }
        let load = Task { [loader] in try await loader.loadToken(replacing: nil) }
        self.load = load
        defer { self.load = nil }
        let token = try await load.value
        self.token = token
        return token
    }
}
