package import TokenServiceConcurrency

/// Anything that can get a token from an authorization server.
///
/// A ``TokenService`` calls it on behalf of all its callers: one load at a time, in its own task, which inherits no caller's
/// priority ceiling, task-locals or cancellation. A loader keeps no token and no state: what it needs from the last
/// load is passed as `previous`.
public protocol TokenLoader: Sendable {
    /// Gets a new token.
    ///
    /// Called for at most one *current* load per service; a load that was given up (timed out or signed out) may still be
    /// running. Throw a ``TokenLoadFailure`` to say whether trying again can help; any other error is transient.
    ///
    /// - Parameter previous: The token to replace, whose refresh token is the grant; `nil` on the first load and after a
    ///   sign-out. It stays the same however often a load fails.
    /// - Returns: The new token. It must carry the refresh token for the next load, also when the server sent no new one
    ///   (RFC 6749 §6).
    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken

    /// Whether another load may start while one that took too long still runs; `false` by default.
    ///
    /// For `client_credentials` it may. With a rotating refresh token it must not: the server may treat the repetition as theft
    /// and revoke the session (RFC 9700 §4.14.2). A repeatable load that exceeds `RefreshPolicy(loadTimeout:)` is cancelled, and
    /// the next caller starts a new one. A non-repeatable load keeps running, and no other starts until it
    /// ends, until ``TokenService/reset()`` or ``TokenService/replace(with:)``, or until four times the limit has passed since its
    /// start: then the next caller's load begins, and this one is cancelled. One that a reset or a replacement cut off is cancelled
    /// at that time, too, without any caller. With a grant that processes share only the first two count.
    ///
    /// In a program's first minute, a non-repeatable load that would spend a refresh token doesn't start ahead of expiry either.
    /// It starts only when a caller waits for it: see ``TokenService/drain(within:)``.
    ///
    /// This says nothing about a load that has *failed*: the next one gets the same `previous`, and with it the same refresh
    /// token. If only the response was lost, a server that rotates has already used up that token, and may end the session. A
    /// loader that would rather ask for a sign-in throws a ``TokenLoadFailure`` with the remedy
    /// ``TokenServiceError/Remedy/signIn``.
    var isRepeatable: Bool { get }

    /// The thumbprint of the key that the loader's tokens are bound to; `nil` by default: they are bound to none.
    ///
    /// A service doesn't hand out a stored token that is bound to another key, since no request with it could be proven. It
    /// passes that token to the next load as `previous`, since the grant may still be good. A loader that wraps another returns
    /// the other's.
    var keyThumbprint: String? { get }
}

extension TokenLoader {
    /// By default `false`: the service repeats nothing that the loader has not declared safe.
    public var isRepeatable: Bool { false }

    /// By default `nil`: anyone who has a token can use it.
    public var keyThumbprint: String? { nil }
}

extension TokenService {
    /// Creates a service whose loader is a closure.
    ///
    /// - Parameters:
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Keeps the token between runs of the program; `nil` to keep it nowhere.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token whose grant is to be revoked.
    ///   - isRepeatable: Whether another load may start while one that took too long still runs; see
    ///     ``TokenLoader/isRepeatable``.
    ///   - loader: Gets a new token; its parameter is the token to replace. See ``TokenLoader/loadToken(replacing:)``.
    public init(
        policy: RefreshPolicy = RefreshPolicy(),
        store: (any TokenStore)? = nil,
        environment: Environment = Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil,
        isRepeatable: Bool = false,
        loader: @escaping @Sendable @concurrent (_ previous: AccessToken?) async throws -> AccessToken
    ) {
        self.init(
            policy: policy, store: store, environment: environment, onDiscard: onDiscard,
            loader: ClosureTokenLoader(isRepeatable: isRepeatable, load: loader))
    }
}

/// A loader that calls a closure.
package struct ClosureTokenLoader: TokenLoader {
    package let isRepeatable: Bool
    let load: @Sendable @concurrent (AccessToken?) async throws -> AccessToken

    package init(isRepeatable: Bool, load: @escaping @Sendable @concurrent (AccessToken?) async throws -> AccessToken) {
        self.isRepeatable = isRepeatable
        self.load = load
    }

    @concurrent package func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await load(previous)
    }
}

/// A loader with a completion handler, whose loads need no thread of the pool.
///
/// It begins on the service's own queue, and calls the program's code elsewhere by itself: see ``ServiceQueue/runOutside(_:)``.
package struct CallbackLoad: TokenLoader {
    /// What a load has when it has begun.
    package enum Beginning: Sendable {
        /// The handler was called before the loader returned, so nothing has to wait.
        case kept(Result<AccessToken, any Error>)
        case awaited(SingleResult<AccessToken>)
    }

    package let isRepeatable: Bool
    private let begin: @Sendable (_ previous: AccessToken?) -> Beginning

    package init(isRepeatable: Bool, begin: @escaping @Sendable (_ previous: AccessToken?) -> Beginning) {
        self.isRepeatable = isRepeatable
        self.begin = begin
    }

    @concurrent package func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        switch begin(previous) {
        case .kept(let result): try result.get()
        case .awaited(let answer): try await answer.value()
        }
    }
}

/// The description leaves out the program's own loader, which may hold a client's secret.
extension CallbackLoad: Redacted {
    package var text: String { "CallbackLoad" }
}

/// The time left for a load.
///
/// A loader checks it before it sends anything that must not be sent late.
public enum LoadTime {
    /// Throws if the load that the current task belongs to has no time left, or if nothing waits for it any longer.
    ///
    /// A service checks this before it calls the loader. If the loader takes long before it sends a refresh token, because it
    /// opens a connection or signs the request, it should call this right before the bytes leave: meanwhile the process may have
    /// been paused, and another process that shares the grant may present the same token soon. Rethrow the error unchanged, so
    /// that the service knows that nothing was sent. With a shared grant it then counts no failure; otherwise callers get the
    /// time-out error if the load's time is over. The loaders of `AccessTokensOAuth` call it before they call their transport; a
    /// transport may call it again once it has a connection.
    ///
    /// Outside of a load it does nothing. Tasks that a loader starts inherit the load, detached ones don't.
    public static func check() throws {
        guard LoadMembership.current?.isInTime ?? true else { throw NotSent() }
    }
}
