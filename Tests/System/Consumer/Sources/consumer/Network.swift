import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import DataLoading
import Foundation

/// An authorization server that grants everything, in place of a network.
struct GenerousTransport: TokenTransport {
    func send(_ request: TransportRequest) async throws -> TransportResponse {
        TransportResponse(
            status: 200, headers: ["Content-Type": "application/json"],
            body: Data(#"{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600}"#.utf8))
    }
}

extension Consumer {
    static func tokens() throws -> TokenService {
        guard let url = URL(string: "https://login.example/token") else { throw URLError(.badURL) }
        return TokenService(
            loader: try ClientCredentialsLoader(
                tokenURL: url, clientID: "consumer", clientSecret: "secret", transport: GenerousTransport()))
    }

    static func askServer() async throws -> String {
        "the server \(try await tokens().retrieveToken().value) it"
    }

    /// Sends a request to a port without a server, to show that it is sent and that the error is clear.
    static func loadData() async throws -> String {
        guard let url = URL(string: "http://127.0.0.1:1/movies") else { throw URLError(.badURL) }
        let factory = DataLoaderFactory(tokens: try OriginTokens(try tokens(), for: [url]))
        do {
            let response = try await factory.makeLoader().perform(Request(url: url))
            return "status \(response.status)"
        } catch let error as DataLoadingError {
            return "\(error.code)"
        }
    }
}
