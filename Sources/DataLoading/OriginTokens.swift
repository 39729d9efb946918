public import AccessTokens
public import Foundation
import AccessTokensHTTP

/// Tokens bound to the servers that they are for.
///
/// ```swift
/// let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL]))
/// ```
///
/// A request to one of these origins carries the current token of its service; a request to any other origin carries none. A
/// redirect that leaves the request's own origin doesn't carry the token, wherever it leads. On Linux a request to a loopback
/// origin without TLS is refused if the environment names a proxy for it (`http_proxy`, `all_proxy`), which would read the token,
/// and `no_proxy` does not name the host.
///
/// Source: RFC 9700 §4.9.1; RFC 6750 §5.3.
public struct OriginTokens: Sendable {
    /// Finds each origin's service anew for each request, so that no service is kept here that could be released.
    let services: [Origin: @Sendable () -> TokenService]

    /// Binds the tokens of a service to origins.
    ///
    /// - Parameters:
    ///   - service: The service that the tokens come from.
    ///   - origins: URLs whose scheme, host and port count: `https`, or `http` to a loopback address.
    /// - Throws: ``DataLoadingError`` with the code `invalidConfiguration`, which says what to correct.
    public init(_ service: TokenService, for origins: [URL]) throws(DataLoadingError) {
        var services: [Origin: @Sendable () -> TokenService] = [:]
        for url in origins {
            let origin = try Self.origin(of: url)
            services[origin] = { service }
        }
        self.services = services
    }

    /// Binds the tokens of several keys to origins: a request carries the token of its origin's key.
    ///
    /// ```swift
    /// let tokens = try OriginTokens(keys: [reportsURL: "reports", mailURL: "mail"]) { services[$0] }
    /// ```
    ///
    /// - Parameters:
    ///   - keys: The key of each URL, whose scheme, host and port count: `https`, or `http` to a loopback address.
    ///   - service: Finds a key's service, in `TokenServices` for example. Called whenever a request is started, on any thread,
    ///     so that no service is kept here that could be released.
    /// - Throws: ``DataLoadingError`` with the code `invalidConfiguration`, which says what to correct. One origin with two keys
    ///   is an error, too.
    public init<Key: Hashable & Sendable>(
        keys: [URL: Key], service: @escaping @Sendable (Key) -> TokenService
    ) throws(DataLoadingError) {
        var bound: [Origin: Key] = [:]
        for (url, key) in keys {
            let origin = try Self.origin(of: url)
            guard bound.updateValue(key, forKey: origin) ?? key == key else {
                throw DataLoadingError(.invalidConfiguration, detail: "two URLs of \(origin) have different keys")
            }
        }
        self.services = bound.mapValues { key in { service(key) } }
    }

    private static func origin(of url: URL) throws(DataLoadingError) -> Origin {
        guard let origin = Origin(url) else {
            let scheme = url.scheme.map { "the scheme \($0)" } ?? "no scheme"
            let host = url.host.map { "the host \($0)" } ?? "no host"
            throw DataLoadingError(
                .invalidConfiguration,
                detail: "its URL, with \(scheme) and \(host), must be http or https, with a host and without user and password")
        }
        guard origin.isPrivate else {
            throw DataLoadingError(
                .invalidConfiguration,
                detail: "its URL must begin with https, since \(origin.host) isn't a loopback address")
        }
        return origin
    }

    /// A service in the session in which a request was started.
    struct Session: Sendable {
        let service: TokenService
        let generation: Int

        /// Returns a token of the session.
        func token() async throws -> AccessToken {
            try OriginTokens.sendable(await service.retrieveToken(seen: generation))
        }
    }

    /// Returns the current session for a message; `nil` if the message goes elsewhere or has other authentication.
    func session(for message: Message) throws(DataLoadingError) -> Session? {
        guard !message.hasLeftOrigin, !message.hasAuthorization, let service = services[message.origin]?() else { return nil }
        if message.origin.scheme != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: message.origin.host)
        {
            throw DataLoadingError(.invalidConfiguration, detail: objection)
        }
        return Session(service: service, generation: service.currentGeneration)
    }

    /// Returns the token if a header can carry it.
    static func sendable(_ token: AccessToken) throws(DataLoadingError) -> AccessToken {
        guard token.tokenType.lowercased() == "bearer" else {
            throw DataLoadingError(.unusableToken, detail: "it is not a Bearer token")
        }
        // RFC 6750 §2.1; in particular no line break, which would start another header.
        let isSendable = !token.value.isEmpty && token.value.utf8.allSatisfy { 0x21...0x7E ~= $0 }
        guard isSendable else {
            throw DataLoadingError(.unusableToken, detail: "it contains characters that a header can't carry")
        }
        return token
    }
}
