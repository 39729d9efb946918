public import AccessTokens

/// The articles' loader: networking with a completion handler.
///
/// Conform the type that does the networking today; ``AccessTokenService`` turns it into a `TokenLoader`. A loader calls
/// its handler once, from any thread. If it calls it again, the first call counts; if it lets the handler go without
/// calling it, the load fails at once; if it keeps the handler and never calls it, the load times out.
public protocol AccessTokenLoader: Sendable {
    /// What a load ends with.
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// Gets a new token and hands it to `handler`.
    ///
    /// Called on a thread of the concurrency pool; return soon and do the work elsewhere. One *current* load calls it at a
    /// time; at most two that were given up may not have called back yet.
    func load(then handler: @escaping Handler)

    /// Whether a load may be repeated while an earlier one still runs; `false` unless said otherwise.
    ///
    /// Say `true` when the loader uses no one-time refresh token: then a load that never calls back is given up after
    /// `RefreshPolicy.loadTimeout` and the next caller starts another, as long as no more than two were given up. With `false` the
    /// next caller waits for that until a few times the limit have passed (`RefreshPolicy.timeoutsUntilForgotten`).
    var isRepeatable: Bool { get }
}

extension AccessTokenLoader {
    /// No: repeat nothing that the loader has not declared safe.
    public var isRepeatable: Bool { false }
}
