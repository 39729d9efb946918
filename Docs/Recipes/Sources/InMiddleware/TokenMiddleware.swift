import AccessTokens
import AccessTokensHTTP
import HTTPTypes

/// Sends each request with a token, and once more with another one if the
/// server refuses it.
///
/// It has the shape of a middleware of generated clients, whatever their
/// type of bodies. For Swift OpenAPI Generator:
///
/// ```swift
/// extension TokenMiddleware: ClientMiddleware {
///     func intercept(
///         _ request: HTTPRequest, body: HTTPBody?, baseURL: URL,
///         operationID: String,
///         next: (HTTPRequest, HTTPBody?, URL) async throws ->
///             (HTTPResponse, HTTPBody?)
///     ) async throws -> (HTTPResponse, HTTPBody?) {
///         let canRepeat = body?.iterationBehavior != .single
///         return try await intercept(
///             request, body: body, canRepeat: canRepeat
///         ) { try await next($0, $1, baseURL) }
///     }
/// }
/// ```
///
/// The tokens go to whatever server the client has, so give each client
/// the tokens for its own. A request that has a header of its own where
/// the token would go goes out as it is.
struct TokenMiddleware: Sendable {
    let tokens: TokenService
    /// Which header carries the token, and which answers refuse it, by
    /// their status and headers.
    var usage = TokenUsage()

    /// - Parameter canRepeat: Whether the body can be sent twice.
    func intercept<Body>(
        _ request: HTTPRequest, body: Body?, canRepeat: Bool,
        next: (HTTPRequest, Body?) async throws -> (HTTPResponse, Body?)
    ) async throws -> (HTTPResponse, Body?) {
        let names = usage.headers(carrying: "").keys.compactMap {
            HTTPField.Name($0)
        }
        guard names.allSatisfy({ request.headerFields[$0] == nil }) else {
            return try await next(request, body)
        }
        let token = try await tokens.retrieveToken()
        let first = try await next(request.with(token, as: usage), body)
        guard isRefusal(first.0) else { return first }
        guard canRepeat else {
            await tokens.invalidate(token)
            return first
        }
        let another = try await tokens.retrieveToken(insteadOf: token)
        let second = try await next(
            request.with(another, as: usage), body)
        if isRefusal(second.0) { await tokens.invalidate(another) }
        return second
    }

    private func isRefusal(_ response: HTTPResponse) -> Bool {
        let headers = response.headerFields.map {
            ($0.name.rawName, $0.value)
        }
        return usage.isRefused(
            by: TransportResponse(
                status: response.status.code,
                headers: Dictionary(headers) { "\($0), \($1)" }),
            tokenType: "Bearer")
    }
}

extension HTTPRequest {
    fileprivate func with(_ token: AccessToken, as usage: TokenUsage)
        -> HTTPRequest
    {
        var request = self
        for (name, value) in usage.headers(carrying: token.value) {
            if let name = HTTPField.Name(name) {
                request.headerFields[name] = value
            }
        }
        return request
    }
}
