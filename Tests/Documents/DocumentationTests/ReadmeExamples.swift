// swift-format-ignore-file: NeverForceUnwrap
import AccessTokens
import AccessTokensOAuth
import DataLoading
import Foundation

// Every Swift block of the README, unchanged, with just enough code around them to compile. `ReadmeTests` compares the two.

/// The first program, a whole `main.swift`.
func firstProgram() async {
    let tokens = TokenService { previous in
        // Ask your server. `previous` is the token to replace, nil at first.
        AccessToken("from-your-server", lifetime: .seconds(3600))
    }

    do {
        let token = try await tokens.retrieveToken()
        print("Authorization: Bearer \(token.value)")
    } catch {
        print("No token: \(error)")
    }
}

func withClientSecret() async {
    do {
        let api = URL(string: "https://api.example.com")!
        let client = try ClientCredentialsLoader(
            tokenURL: URL(string: "https://login.example.com/oauth/token")!,
            clientID: "reports", clientSecret: "the secret", scope: "api.read")
        let tokens = try OriginTokens(TokenService(loader: client), for: [api])
        let loader = DataLoaderFactory(tokens: tokens).makeLoader()
        let report = try await loader.perform(Request(url: api.appending(path: "report")))
        print(String(decoding: report.body, as: UTF8.self))
    } catch {
        print("No report: \(error)")
    }
}
