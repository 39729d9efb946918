public import AccessTokens

/// A loader with a completion handler, which gets the token to replace, and with it the refresh token.
///
/// Conform the type that does the networking today; ``AccessTokenService`` turns it into a `TokenLoader`. A loader calls its
/// handler once, from any thread. If it calls the handler again, the first call counts. If it releases the handler without
/// calling it, the load fails at once. If it keeps the handler and never calls it, the load times out. A loader keeps no token:
/// the refresh token comes with each call, so that a sign-out leaves none behind.
public protocol CallbackTokenLoader: Sendable {
    /// Called with the result of a load.
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// Gets a new token and passes it to `handler`.
    ///
    /// Called on a thread of its own, so it may block. If the service's environment has a `loadExecutor`, it is called there, and
    /// if it has only an `executor`, on the default pool. Only one *current* load calls it at a time; at most two loads that were
    /// given up may not have called back yet.
    ///
    /// - Parameters:
    ///   - previous: The token to replace, whose refresh token is the grant; `nil` on the first load and after a sign-out.
    ///   - handler: Gets the new token. It must carry the refresh token for the next load, also when the server sent no new one
    ///     (RFC 6749 §6).
    func load(replacing previous: AccessToken?, then handler: @escaping Handler)

    /// Whether a load may be repeated while an earlier one still runs; `false` by default.
    ///
    /// Return `true` if the loader uses no one-time refresh token: then a load that never calls back is given up after
    /// `RefreshPolicy(loadTimeout:)`, and the next caller starts another, as long as no more than two were given up. With `false`
    /// the next caller waits for the load until four times the limit have passed since its start.
    var isRepeatable: Bool { get }
}

extension CallbackTokenLoader {
    /// By default `false`: the service repeats nothing that the loader has not declared safe.
    public var isRepeatable: Bool { false }
}

/// The articles' loader: networking with a completion handler that needs no refresh token.
///
/// Everything that ``CallbackTokenLoader`` says about the handler is true here. A loader that uses a refresh token conforms to
/// that protocol instead.
public protocol AccessTokenLoader: CallbackTokenLoader {
    /// Gets a new token and passes it to `handler`; called like ``CallbackTokenLoader/load(replacing:then:)``.
    func load(then handler: @escaping Handler)
}

extension AccessTokenLoader {
    /// Calls ``load(then:)``, which takes no token to replace.
    public func load(replacing previous: AccessToken?, then handler: @escaping Handler) { load(then: handler) }
}
