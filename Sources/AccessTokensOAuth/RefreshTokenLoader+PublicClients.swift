#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension RefreshTokenLoader {
    /// Creates a loader for a public client: an app, which can keep no secret and so has none.
    ///
    /// - Parameters:
    ///   - tokenURL: The token endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 6749 §3.2.
    ///   - clientID: The client's id, which the form carries. Source: RFC 6749 §3.2.1.
    ///   - scope: The scopes to ask for, to have fewer than were granted; `nil` or empty: all of them. Source: RFC 6749 §6.
    ///   - scopeMayShrink: Whether scopes that the last token does not have are left out, for a server that refuses to grant
    ///     them (`invalid_scope`). Only if it spells scopes as you do: what it spells otherwise is left out, too.
    ///   - additionalParameters: What else the server wants to know, such as `resource` (RFC 8707); no secrets.
    ///   - lifetimeWhenMissing: The lifetime of a token whose answer names none, or none that can be read; `nil`: until it
    ///     is invalidated.
    ///   - transport: What carries the requests; its time limit must lie below `RefreshPolicy.loadTimeout`.
    ///   - wallClock: The time, which only a `Retry-After` with a date is compared with.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        tokenURL: URL,
        clientID: String,
        scope: String? = nil,
        scopeMayShrink: Bool = false,
        additionalParameters: [String: String] = [:],
        lifetimeWhenMissing: Duration? = .seconds(300),
        transport: any TokenTransport = URLSessionTransport(),
        wallClock: @escaping @Sendable () -> Date = { Date() }
    ) throws(OAuthError) {
        try self.init(
            tokenURL: tokenURL, clientID: clientID, clientSecret: "", scope: scope, scopeMayShrink: scopeMayShrink,
            authentication: .publicClient, additionalParameters: additionalParameters,
            lifetimeWhenMissing: lifetimeWhenMissing, transport: transport, wallClock: wallClock)
    }
}
