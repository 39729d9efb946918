import AccessTokens
import AccessTokensOAuth
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The clients in “Reacting to a 401”, the right one and the tempting one, unchanged.
enum RefusalClients {
    struct APIClient {
        let session: URLSession
        let tokens: TokenService

        func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
            let token = try await tokens.retrieveToken()
            let (body, response) = try await send(request, with: token)
            guard refusesToken(response) else { return (body, response) }
            let next = try await tokens.retrieveToken(insteadOf: token)
            let (secondBody, second) = try await send(request, with: next)
            if refusesToken(second) { await tokens.invalidate(next) }
            return (secondBody, second)
        }

        func send(
            _ request: URLRequest, with token: AccessToken
        ) async throws -> (Data, HTTPURLResponse) {
            var message = request
            message.setValue(
                "Bearer \(token.value)", forHTTPHeaderField: "Authorization")
            let (body, response) = try await session.data(for: message)
            guard let response = response as? HTTPURLResponse else {
                throw URLError(.badServerResponse)
            }
            return (body, response)
        }

        func refusesToken(_ response: HTTPURLResponse) -> Bool {
            guard response.statusCode == 401 else { return false }
            let header = response.value(forHTTPHeaderField: "WWW-Authenticate")
            guard let header else { return true }
            return AuthenticationChallenge.challenges(in: header).contains {
                $0.hasScheme("Bearer")
                    && ["invalid_token", nil].contains($0["error"])
            }
        }
    }

    struct ForcingClient {
        let session: URLSession
        let tokens: TokenService

        func send(_ request: URLRequest) async throws -> Int? {
            var message = request
            while true {
                let token = try await tokens.retrieveToken()
                message.setValue(
                    "Bearer \(token.value)", forHTTPHeaderField: "Authorization")
                let (_, response) = try await session.data(for: message)
                let status = (response as? HTTPURLResponse)?.statusCode
                guard status == 401 else { return status }
                if let current = tokens.cachedToken { await tokens.invalidate(current) }
            }
        }
    }
}
