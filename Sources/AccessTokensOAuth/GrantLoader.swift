public import AccessTokens
import TokenServiceConcurrency

/// A loader for any grant, which a closure creates for each load.
///
/// ```swift
/// let tokens = TokenService(
///     loader: GrantLoader(client, isRepeatable: true) { _ in .jwtBearer(try await file.read(), scope: "api.read") })
/// ```
///
/// A value without state: concurrent loads are independent requests, each sent once and never redirected. The next refresh token
/// is part of the returned token. If the access token can't be used, a refresh token in the same answer is kept: see
/// ``OAuthClient/token(for:replacing:)``.
public struct GrantLoader: TokenLoader {
    /// Whether another load may start while one that took too long still runs.
    public let isRepeatable: Bool

    private let client: OAuthClient
    private let grant: @Sendable @concurrent (AccessToken?) async throws -> Grant

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - client: The client that presents the grants.
    ///   - isRepeatable: Whether all grants are repeatable, so that another load may start while one that took too long still
    ///     runs. If `true`, a grant that isn't repeatable is refused before it is sent.
    ///   - grant: Makes the grant for one load. Its parameter is the token to replace; `nil` on the first load and after a
    ///     sign-out. It may be called concurrently. If there is no grant, throw ``OAuthError/signInNeeded``. An error that isn't
    ///     a `TokenLoadFailure` becomes an ``OAuthError`` with the code `credentialsUnavailable`; nothing was sent then.
    public init(
        _ client: OAuthClient, isRepeatable: Bool,
        grant: @escaping @Sendable @concurrent (_ previous: AccessToken?) async throws -> Grant
    ) {
        self.client = client
        self.isRepeatable = isRepeatable
        self.grant = grant
    }

    /// Gets a token with one request to the server.
    ///
    /// - Throws: What ``OAuthClient/token(for:replacing:)`` throws.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let grant = try await beforeSending("the grant") { try await self.grant(previous) }
        guard grant.isRepeatable || !isRepeatable else {
            throw OAuthError(.invalidConfiguration("the loader is repeatable, but its grant isn't"))
        }
        return try await client.token(for: grant, replacing: previous).token
    }

    /// The client's key; `nil` if it has none.
    public var keyThumbprint: String? { client.keyThumbprint }
}

extension GrantLoader: Redacted {
    /// The client's id and the server's host; not the grant.
    package var text: String { "GrantLoader(\(client.place))" }
}
