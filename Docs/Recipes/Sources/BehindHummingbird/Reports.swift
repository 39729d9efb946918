import AccessTokens
import AccessTokensKeys
import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1

/// Gives each tenant the reports that an API has for it.
struct Reports {
    let tokens: TokenServices<String>
    let client: HTTPClient
    let url: String
    let origin: Origin

    /// - Parameter tenant: Tells whose request it is, after it has
    ///   authenticated it.
    func router(
        tenant: @escaping @Sendable (Request) throws -> String
    ) -> Router<BasicRequestContext> {
        let router = Router()
        router.get("reports") { request, _ in
            do {
                return try await reports(of: tenant(request))
            } catch let error as TokenServiceError {
                throw HTTPError(error)
            }
        }
        return router
    }

    /// Answers until SIGTERM arrives, then finishes the open requests.
    func run(
        at address: BindAddress,
        tenant: @escaping @Sendable (Request) throws -> String
    ) async throws {
        let server = Application(
            router: router(tenant: tenant),
            configuration: .init(address: address))
        try await server.runService()  // returns after the last answer
        await tokens.drain(within: .seconds(8))
    }

    private func reports(of tenant: String) async throws -> Response {
        // One service for the whole request: only the service that gave
        // a token out replaces it after a 401.
        let tokens = tokens[tenant]
        let answer = try await client.execute(
            HTTPClientRequest(url: url), timeout: .seconds(10),
            with: tokens, for: origin)
        guard answer.status == .ok else { throw HTTPError(.badGateway) }
        let body = try await answer.body.collect(upTo: 1 << 20)
        return Response(status: .ok, body: ResponseBody(byteBuffer: body))
    }
}

extension HTTPError {
    /// The tenant's remedy: to sign in with the API, or to wait.
    init(_ error: TokenServiceError) {
        switch error.remedy {
        case .signIn: self.init(.unauthorized)
        case .clientRegistration: self.init(.internalServerError)
        default:
            let wait = error.retryAt.map { Int($0.timeIntervalSinceNow) }
            self.init(
                .serviceUnavailable,
                headers: [.retryAfter: "\(max(1, wait ?? 1))"],
                message: nil)
        }
    }
}
