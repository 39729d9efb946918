import AccessTokens
import AccessTokensHTTP
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

extension HTTPClient {
    /// Sends a request with a token if it goes to the origin that the
    /// tokens are for, and after a refusal once more with another one.
    ///
    /// The time is for the tokens, too. Pass `canRepeat: false` if the
    /// body is a stream. If the usage reads the bodies of answers, pass
    /// their `bodyLimit`: a longer body is then an error. If it puts the
    /// token elsewhere than into `Authorization`, let the client follow
    /// no redirects, which would take the token to other origins.
    func execute(
        _ request: HTTPClientRequest, timeout: TimeAmount,
        with tokens: TokenService, for origin: Origin,
        usage: TokenUsage = TokenUsage(), bodyLimit: Int = 0,
        canRepeat: Bool = true
    ) async throws -> HTTPClientResponse {
        let deadline = NIODeadline.now() + timeout
        let own = request.headers.map(\.name).filter(isOfConnection)
        guard own.isEmpty else {
            throw HTTPClientError.invalidHeaderFieldNames(own)
        }
        guard Origin(request.url) == origin, !request.isTaken(by: usage)
        else { return try await execute(request, deadline: deadline) }
        let token = try await tokens.retrieveToken(within: deadline.rest)
        var first = try await execute(
            request.with(token, as: usage), deadline: deadline)
        guard try await first.isRefusal(in: usage, of: origin, bodyLimit)
        else { return first }
        guard canRepeat else {
            await tokens.invalidate(token)
            return first
        }
        let next = try await tokens.retrieveToken(
            insteadOf: token, within: deadline.rest)
        var second = try await execute(
            request.with(next, as: usage), deadline: deadline)
        if try await second.isRefusal(in: usage, of: origin, bodyLimit) {
            await tokens.invalidate(next)
        }
        return second
    }
}

/// Whether a header follows from the URL and the body.
///
/// One that was copied from another request would let the rest of the
/// body be read as the next request (RFC 9112 §11.2), or take the token
/// to another host.
private func isOfConnection(_ name: String) -> Bool {
    [
        "connection", "content-length", "host", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ].contains(name.lowercased())
}

extension NIODeadline {
    fileprivate var rest: Duration {
        .nanoseconds((self - .now()).nanoseconds)
    }
}

extension HTTPClientRequest {
    func isTaken(by usage: TokenUsage) -> Bool {
        guard let url = URL(string: url) else { return true }
        return usage.isTaken(in: url, headers: headers.joined)
    }

    func with(_ token: AccessToken, as usage: TokenUsage) -> Self {
        var request = self
        if let url = URL(string: url) {
            let carrying = usage.url(url, carrying: token.value)
            request.url = carrying.absoluteString
        }
        for (name, value) in usage.headers(carrying: token.value) {
            request.headers.add(name: name, value: value)
        }
        return request
    }
}

extension HTTPClientResponse {
    /// Not if the request was redirected to another origin: the client
    /// left the token behind.
    mutating func isRefusal(
        in usage: TokenUsage, of origin: Origin, _ bodyLimit: Int
    ) async throws -> Bool {
        guard url.map({ Origin($0.absoluteString) == origin }) ?? true
        else { return false }
        var answer = TransportResponse(
            status: Int(status.code), headers: headers.joined)
        if bodyLimit > 0 {
            let bytes = try await body.collect(upTo: bodyLimit)
            body = .bytes(bytes)
            answer.body = Data(bytes.readableBytesView)
        }
        return usage.isRefused(by: answer, tokenType: "Bearer")
    }
}

extension HTTPHeaders {
    fileprivate var joined: [String: String] {
        Dictionary(map { ($0.name, $0.value) }) { "\($0), \($1)" }
    }
}

/// Scheme, host and port; `nil` for a URL that must not get a token.
struct Origin: Hashable {
    let scheme: String
    let host: String
    let port: Int

    init?(_ text: String) {
        guard let url = URL(string: text),
            let host = url.host?.lowercased(),
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
