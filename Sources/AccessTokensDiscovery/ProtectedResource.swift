public import AccessTokensHTTP
public import AccessTokensOAuth
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A resource's metadata: which authorization servers' tokens it accepts.
///
/// ```swift
/// let resource = try await ProtectedResource.discover("https://mcp.example/server", metadataURL: error.resourceMetadata)
/// let server = try await AuthorizationServer.discover(resource.authorizationServers[0])
/// ```
///
/// Source: RFC 9728.
public struct ProtectedResource: Sendable {
    /// The resource's identifier, which requests for a token name as `resource` (RFC 8707).
    public let resource: String

    /// The issuers of the tokens that the resource accepts, at least one.
    public let authorizationServers: [String]

    /// All members of the metadata.
    public let members: AnswerMembers

    /// The scopes that it uses; empty if the metadata doesn't list them.
    public var scopes: [String] { members.list("scopes_supported") }

    /// Fetches a resource's metadata with one request.
    ///
    /// Follows no redirect.
    ///
    /// - Parameters:
    ///   - resource: The resource's identifier: `https`, or `http` to a loopback address. The metadata's own must be the same
    ///     text.
    ///   - metadataURL: Where the metadata is, as a 401 said (`resource_metadata`); refused unless on the resource's own origin.
    ///     `nil`: at the location of RFC 9728 §3.1.
    ///   - transport: Carries the request.
    ///   - timeLimit: How long it may take, 20 s unless said otherwise. Clamped to 0.1 s through one hour.
    /// - Throws: `OAuthError`, with the code `invalidMetadata` if there is none, or it is another resource's, names no
    ///   authorization server, is longer than 1 MiB, or redirected; or `CancellationError` when its task is cancelled.
    @concurrent public static func discover(
        _ resource: String, metadataURL: URL? = nil, transport: any TokenTransport = URLSessionTransport(),
        timeLimit: Duration = .seconds(20)
    ) async throws -> ProtectedResource {
        let place = try MetadataDocument.place("the resource", resource)
        guard let url = metadataURL ?? MetadataDocument.wellKnown("oauth-protected-resource", of: place) else {
            throw OAuthError(.invalidConfiguration("there can't be metadata for the resource's URL"))
        }
        let shown = ServerText.safe(url.absoluteString, hiding: [])
        // Otherwise a resource could make this program call any server inside its network (RFC 9728 §7.7).
        guard Origin(url) == Origin(place), url.fragment == nil else {
            throw OAuthError(
                .invalidMetadata("The metadata's URL, \(shown), is not on the resource's origin; nothing was sent"))
        }
        let (found, answer) = try await MetadataDocument.fetch(url, by: transport, timeLimit: timeLimit)
        guard let found else { throw OAuthError(.invalidMetadata("No metadata of this resource was found (\(answer))")) }
        // RFC 9728 §3.3: otherwise one resource could obtain tokens for another.
        guard let named = found["resource"], named.utf8.elementsEqual(resource.utf8) else {
            let other =
                found["resource"].map { "belongs to another resource, \(ServerText.safe($0, hiding: []))" } ?? "names no resource"
            throw OAuthError(
                .invalidMetadata(
                    "The metadata at \(shown) \(other); it was not used. If you meant that resource, pass its identifier"))
        }
        let servers = found.list("authorization_servers")
        guard !servers.isEmpty else {
            throw OAuthError(.invalidMetadata("The metadata at \(shown) names no authorization server"))
        }
        return ProtectedResource(resource: resource, authorizationServers: servers, members: found)
    }
}

extension ProtectedResource: Redacted {
    /// The resource's host.
    package var text: String { "ProtectedResource(\(URL(string: resource)?.host(percentEncoded: true) ?? "nowhere"))" }
}
