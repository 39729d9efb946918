import AccessTokens
import AccessTokensHTTP
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The clients in “Reacting to a 401”, the right one and the tempting one, unchanged.
enum RefusalClients {
    struct APIClient {
        let session: URLSession
        let tokens: TokenService
        var usage = TokenUsage()

        func send(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
            let token = try await tokens.retrieveToken()
            let (body, response) = try await send(request, with: token)
            guard isRefused(body, response) else { return (body, response) }
            let next = try await tokens.retrieveToken(insteadOf: token)
            let (secondBody, second) = try await send(request, with: next)
            if isRefused(secondBody, second) { await tokens.invalidate(next) }
            return (secondBody, second)
        }

        func send(
            _ request: URLRequest, with token: AccessToken
        ) async throws -> (Data, HTTPURLResponse) {
            var message = request
            message.url = message.url.map {
                usage.url($0, carrying: token.value)
            }
            for (name, value) in usage.headers(carrying: token.value) {
                message.setValue(value, forHTTPHeaderField: name)
            }
            let (body, response) = try await session.data(for: message)
            guard let response = response as? HTTPURLResponse else {
                throw URLError(.badServerResponse)
            }
            return (body, response)
        }

        func isRefused(_ body: Data, _ response: HTTPURLResponse) -> Bool {
            var headers: [String: String] = [:]
            for (name, value) in response.allHeaderFields {
                headers["\(name)"] = "\(value)"
            }
            return usage.isRefused(
                by: TransportResponse(
                    status: response.statusCode, headers: headers, body: body),
                tokenType: "Bearer")
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
                if let current = tokens.cachedToken {
                    await tokens.invalidate(current)
                }
            }
        }
    }
}
