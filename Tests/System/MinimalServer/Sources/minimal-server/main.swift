import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Takes the place of a client such as AsyncHTTPClient, which would be most of the program.
struct Transport: TokenTransport {
    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        TransportResponse(status: 200, body: Data(#"{"access_token":"a","token_type":"Bearer","expires_in":3600}"#.utf8))
    }
}

guard let url = URL(string: "https://login.example/token") else { fatalError("not a URL") }
let loader = try ClientCredentialsLoader(
    tokenURL: url, clientID: "reports", clientSecret: "secret", transport: Transport())
let tokens = TokenService(loader: loader)
let token = try await tokens.retrieveToken()
precondition(token.value == "a")

// Without a transport, there is an error before anything is sent.
do {
    let client = try ClientCredentialsLoader(tokenURL: url, clientID: "reports", clientSecret: "secret")
    _ = try await client.loadToken(replacing: nil)
    fatalError("it sent something")
} catch let error as OAuthError {
    print("a token for \(token.lifetime ?? .zero); without a transport: \(error)")
}
