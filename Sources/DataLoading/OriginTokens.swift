public import AccessTokens
public import Foundation
import TokenServiceHTTP

/// A service's tokens, bound to the servers that they are for.
///
/// ```swift
/// let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL]))
/// ```
///
/// A request to one of these origins carries the current token; a request to any other carries none. A redirect that
/// leaves the request's own origin takes no token along, wherever it leads. On Linux a request to a loopback origin without TLS is
/// refused where the environment names a proxy for it, which would read the token (`http_proxy`, `all_proxy`), and `no_proxy` does
/// not name the host.
///
/// Source: RFC 9700 §4.9.1; RFC 6750 §5.3.
public struct OriginTokens: Sendable {
    let service: TokenService
    let origins: Set<Origin>

    /// Binds the tokens of a service to origins.
    ///
    /// - Parameters:
    ///   - service: The service whose tokens they are.
    ///   - origins: URLs whose scheme, host and port count: `https`, or `http` to a loopback address.
    /// - Throws: ``DataLoadingError`` with the code `invalidConfiguration`, which says what to correct.
    public init(_ service: TokenService, for origins: [URL]) throws(DataLoadingError) {
        var bound: Set<Origin> = []
        for url in origins {
            guard let origin = Origin(url) else {
                throw DataLoadingError(
                    .invalidConfiguration, detail: "its URL must be http or https, with a host and without user and password")
            }
            guard origin.isPrivate else {
                throw DataLoadingError(
                    .invalidConfiguration, detail: "its URL must begin with https, or with http for a loopback address")
            }
            bound.insert(origin)
        }
        self.service = service
        self.origins = bound
    }

    /// The token that a message carries; `nil` if it goes elsewhere, or is authenticated otherwise.
    func token(for message: Message) async throws -> AccessToken? {
        guard !message.hasLeftOrigin, !message.hasAuthorization, origins.contains(message.origin) else { return nil }
        if message.origin.scheme != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: message.origin.host)
        {
            throw DataLoadingError(.invalidConfiguration, detail: objection)
        }
        let token = try await service.retrieveToken()
        guard token.tokenType.lowercased() == "bearer" else {
            throw DataLoadingError(.unusableToken, detail: "it is not a Bearer token")
        }
        // RFC 6750 §2.1; above all no line break, which would begin another header.
        let isSendable = !token.value.isEmpty && token.value.utf8.allSatisfy { 0x21...0x7E ~= $0 }
        guard isSendable else {
            throw DataLoadingError(.unusableToken, detail: "it contains characters that a header can't carry")
        }
        return token
    }
}
