import AccessTokens

struct Uploader {
    let tokens: TokenService

    func upload(_ file: String) async -> String {
        let token = try? await tokens.retrieveToken()
        return "\(file) with \(token?.value ?? "no token")"
    }
}

struct Prefetcher {
    let tokens: TokenService

    func prefetch() async -> Bool {
        (try? await tokens.retrieveToken()) != nil
    }
}
