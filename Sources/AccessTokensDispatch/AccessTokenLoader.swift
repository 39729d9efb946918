public import AccessTokens

/// The articles' loader: networking with a completion handler.
///
/// Conform the type that does the networking today; ``AccessTokenService`` turns it into a `TokenLoader`. A loader calls its
/// handler once, from any thread. If it calls the handler again, the first call counts. If it releases the handler without
/// calling it, the load fails at once. If it keeps the handler and never calls it, the load times out.
public protocol AccessTokenLoader: Sendable {
    /// Called with the result of a load.
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// Gets a new token and passes it to `handler`.
    ///
    /// Called on a thread of its own, so it may block; with an executor in the service's environment, there. Only one *current* load calls it at a
    /// time; at most two loads that were given up may not have called back yet.
    func load(then handler: @escaping Handler)

    /// Whether a load may be repeated while an earlier one still runs; `false` by default.
    ///
    /// Return `true` if the loader uses no one-time refresh token: then a load that never calls back is given up after
    /// `RefreshPolicy(loadTimeout:)`, and the next caller starts another, as long as no more than two were given up. With `false`
    /// the next caller waits for the load until four times the limit have passed since its start.
    var isRepeatable: Bool { get }
}

extension AccessTokenLoader {
    /// By default `false`: the service repeats nothing that the loader has not declared safe.
    public var isRepeatable: Bool { false }
}
