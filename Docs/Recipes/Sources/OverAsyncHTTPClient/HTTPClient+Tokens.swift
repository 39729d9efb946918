import AccessTokens
import AccessTokensOAuth
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

extension HTTPClient {
    /// Sends a request with a token if it goes to the origin that the
    /// tokens are for, and after a 401 once more with another one.
    ///
    /// The time is for the tokens, too. Pass `canRepeat: false` if the
    /// body is a stream.
    func execute(
        _ request: HTTPClientRequest, timeout: TimeAmount,
        with tokens: TokenService, for origin: Origin,
        canRepeat: Bool = true
    ) async throws -> HTTPClientResponse {
        let deadline = NIODeadline.now() + timeout
        guard Origin(request.url) == origin,
            !request.headers.contains(name: "Authorization")
        else { return try await execute(request, deadline: deadline) }
        let token = try await tokens.retrieveToken(within: deadline.rest)
        let first = try await execute(
            request.with(token), deadline: deadline)
        guard first.refusesToken(of: origin) else { return first }
        guard canRepeat else {
            await tokens.invalidate(token)
            return first
        }
        let next = try await tokens.retrieveToken(
            insteadOf: token, within: deadline.rest)
        let second = try await execute(
            request.with(next), deadline: deadline)
        if second.refusesToken(of: origin) { await tokens.invalidate(next) }
        return second
    }
}

extension NIODeadline {
    fileprivate var rest: Duration {
        .nanoseconds((self - .now()).nanoseconds)
    }
}

extension HTTPClientRequest {
    func with(_ token: AccessToken) -> HTTPClientRequest {
        var request = self
        request.headers.add(
            name: "Authorization", value: "Bearer \(token.value)")
        return request
    }
}

extension HTTPClientResponse {
    /// Not if the request was redirected to another origin: the client
    /// left the token behind.
    func refusesToken(of origin: Origin) -> Bool {
        guard status == .unauthorized,
            url.map({ Origin($0.absoluteString) == origin }) ?? true
        else { return false }
        let header = headers[canonicalForm: "WWW-Authenticate"]
        guard !header.isEmpty else { return true }
        let challenges = AuthenticationChallenge.challenges(
            in: header.joined(separator: ", "))
        return challenges.contains {
            $0.hasScheme("Bearer")
                && ["invalid_token", nil].contains($0["error"])
        }
    }
}

/// Scheme, host and port; `nil` for a URL that must not get a token.
struct Origin: Hashable {
    let scheme: String
    let host: String
    let port: Int

    init?(_ text: String) {
        guard let url = URL(string: text), let host = url.host?.lowercased(),
            let scheme = url.scheme?.lowercased(), url.user == nil
        else { return nil }
        let isHere = ["127.0.0.1", "::1", "localhost"].contains(host)
        guard scheme == "https" || scheme == "http" && isHere else {
            return nil
        }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }
}
