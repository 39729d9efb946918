import AccessTokens
import AccessTokensHTTP
import HTTPTypes
import Synchronization
import Testing

@testable import InMiddleware

@Suite struct MiddlewareTests {
    private func tokens() -> TokenService {
        let count = Mutex(0)
        return TokenService { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return AccessToken("\(number)", lifetime: .seconds(3600))
        }
    }

    private let request = HTTPRequest(method: .post, scheme: "https", authority: "api.example", path: "/")

    /// Sends a request through the middleware to a server that accepts some tokens; returns the status and what arrived.
    private func send(
        _ request: HTTPRequest, accepting accepted: Set<String>, canRepeat: Bool = true, by middleware: TokenMiddleware,
        challenge: String = "Bearer error=\"invalid_token\""
    ) async throws -> (status: Int, arrived: [String]) {
        var arrived: [String] = []
        let (response, body) = try await middleware.intercept(request, body: "body", canRepeat: canRepeat) { request, body in
            let token = request.headerFields[.authorization] ?? "none"
            arrived.append("\(token) \(body ?? "")")
            guard accepted.contains(token) else {
                return (HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: challenge]), nil)
            }
            return (HTTPResponse(status: .ok), "answer")
        }
        #expect((body == "answer") == (response.status == .ok))
        return (response.status.code, arrived)
    }

    @Test func `a refused request is sent once more with another token`() async throws {
        let middleware = TokenMiddleware(tokens: tokens())
        let (status, arrived) = try await send(request, accepting: ["Bearer 2"], by: middleware)
        #expect(status == 200 && arrived == ["Bearer 1 body", "Bearer 2 body"])
        #expect(try await send(request, accepting: ["Bearer 2"], by: middleware).arrived == ["Bearer 2 body"])
    }

    @Test func `a request whose body can't be sent twice isn't, and the next one gets another token`() async throws {
        let middleware = TokenMiddleware(tokens: tokens())
        let (status, arrived) = try await send(request, accepting: [], canRepeat: false, by: middleware)
        #expect(status == 401 && arrived == ["Bearer 1 body"])
        #expect(try await send(request, accepting: ["Bearer 2"], by: middleware).arrived == ["Bearer 2 body"])
    }

    @Test func `a second refusal is the answer, and a 401 for another reason costs no load`() async throws {
        let middleware = TokenMiddleware(tokens: tokens())
        let other = try await send(
            request, accepting: [], by: middleware, challenge: "Bearer error=\"insufficient_user_authentication\"")
        #expect(other.status == 401 && other.arrived == ["Bearer 1 body"])
        let (status, arrived) = try await send(request, accepting: [], by: middleware)
        #expect(status == 401 && arrived == ["Bearer 1 body", "Bearer 2 body"] && middleware.tokens.cachedToken == nil)
    }

    @Test func `a request with an Authorization of its own goes out as it is`() async throws {
        let middleware = TokenMiddleware(tokens: tokens())
        var own = request
        own.headerFields[.authorization] = "Basic x"
        #expect(try await send(own, accepting: [], by: middleware).arrived == ["Basic x body"])
        #expect(middleware.tokens.cachedToken == nil)
    }
}
