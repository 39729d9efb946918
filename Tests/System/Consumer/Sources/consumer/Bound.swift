import AccessTokens
import AccessTokensDPoP
import AccessTokensDiscovery
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation

extension Consumer {
    static func proveRequest() async throws -> String {
        let key = try DPoPKey(.p256(Data(repeating: 1, count: 64)), algorithm: "ES256") { _ in Data(repeating: 7, count: 64) }
        guard let url = URL(string: "https://api.example/reports") else { throw URLError(.badURL) }
        let proof = try await key.proof(method: "GET", url: url, accessToken: "a", nonce: nil)
        return "a proof of \(proof.headers["DPoP"]?.split(separator: ".").count ?? 0) parts"
    }

    static func discover() async throws -> String {
        struct Metadata: TokenTransport {
            @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
                let body = #"{"issuer":"https://login.example","token_endpoint":"https://login.example/token"}"#
                return TransportResponse(status: 200, body: Data(body.utf8))
            }
        }
        let server = try await AuthorizationServer.discover("https://login.example", transport: Metadata())
        return "\(try server.client(id: "consumer"))"
    }
}
