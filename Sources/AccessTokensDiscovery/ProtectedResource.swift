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
    public let members: ResponseMembers

    /// The scopes that it uses; empty if the metadata doesn't list them.
    public var scopes: [String] { members.list("scopes_supported") }

    /// Fetches a resource's metadata.
    ///
    /// Tries the location of RFC 9728, and if the resource's path ends with a slash, the one without it, with one request each.
    /// Follows no redirect. From now on the resource is spelled as the metadata spell it, with or without the slash of an empty
    /// path.
    ///
    /// - Parameters:
    ///   - resource: The resource's identifier: `https`, or `http` to a loopback address. The metadata's own must be the same
    ///     text, but for the slash of an empty path.
    ///   - metadataURL: Where the metadata is, as a 401 said (`resource_metadata`); refused unless on the resource's own origin.
    ///     `nil`: at the location of RFC 9728 §3.1.
    ///   - acceptsOrigin: Whether metadata of the resource's whole origin, at a well-known place, may be used if it has none of its
    ///     own. Its tokens are then for everything at that origin, so only for an origin where one party serves everything.
    ///   - transport: Carries the requests.
    ///   - timeLimit: How long each may take, 20 s unless said otherwise. Clamped to 0.1 s through one hour.
    /// - Throws: `OAuthError`, with the code `invalidMetadata` if there is none (with the status 404 if each place says so), or it
    ///   is another resource's, names no authorization server, or is longer than 1 MiB; or `CancellationError` when its task is
    ///   cancelled.
    @concurrent public static func discover(
        _ resource: String, metadataURL: URL? = nil, acceptsOrigin: Bool = false,
        transport: any TokenTransport = URLSessionTransport(), timeLimit: Duration = .seconds(20)
    ) async throws -> ProtectedResource {
        let place = try MetadataDocument.place("the resource", resource, hasQuery: true)
        guard let root = URL(string: "/", relativeTo: place)?.absoluteURL else {
            throw OAuthError(.invalidConfiguration("there can't be metadata for the resource's URL"))
        }
        let name = "oauth-protected-resource"
        let known = [
            MetadataDocument.wellKnown(name, of: place, keepsSlash: true), MetadataDocument.wellKnown(name, of: place),
            acceptsOrigin ? MetadataDocument.wellKnown(name, of: root) : nil,
        ].compactMap(\.self)
        var places: [URL] = []
        for url in metadataURL.map({ [$0] }) ?? known where !places.contains(url) { places.append(url) }
        // Otherwise a resource could make this program call any server inside its network (RFC 9728 §7.7).
        for url in places where Origin(url) != Origin(place) || url.fragment != nil {
            let shown = ServerText.safe(url.absoluteString, hiding: [])
            throw OAuthError(
                .invalidMetadata("The metadata's URL, \(shown), is not on the resource's origin; nothing was sent"))
        }
        // A path must not speak for its origin.
        let acceptsOrigin = acceptsOrigin && places.allSatisfy(known.contains)
        let (found, named, shown) = try await MetadataDocument.first(
            "resource", at: places, by: transport, timeLimit: timeLimit
        ) { identifier in
            MetadataDocument.isSame(identifier, as: resource)
                || acceptsOrigin && MetadataDocument.isSame(identifier, as: root.absoluteString)
        }
        let servers = found.list("authorization_servers")
        guard !servers.isEmpty else {
            throw OAuthError(.invalidMetadata("The metadata at \(shown) names no authorization server"))
        }
        return ProtectedResource(resource: named, authorizationServers: servers, members: found)
    }
}

extension ProtectedResource: Redacted {
    /// The resource's host.
    package var text: String { "ProtectedResource(\(URL(string: resource)?.host(percentEncoded: true) ?? "nowhere"))" }
}
