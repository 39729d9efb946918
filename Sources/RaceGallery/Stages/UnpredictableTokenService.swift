package import AccessTokens
package import AccessTokensDispatch
import Interleavings

/// The articles' first stage: a cached token, or a load for each caller that finds none.
///
/// Right: a valid token is handed over at once; a failure is not kept; every caller of a loader that answers once is
/// answered once, even after the service was released.
///
/// Wrong:
/// - two calls before the first load ends start **two loads**; a server that keeps one token valid revokes the first token while
///   its caller holds it, and the last answer to arrive is kept, which may be the revoked token;
/// - answers arrive in the order in which the loads end, not in the order of the calls, and sometimes on the caller's own stack;
/// - a loader that answers twice calls its caller's handler twice; if one never answers, its caller waits forever;
/// - a sign-out during a load is undone by the load's result;
/// - with two threads at once, the behaviour is undefined: it is for one thread only, its loader's answers included.
package final class UnpredictableTokenService {
    /// Called with the result of a call.
    package typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    private let loader: any AccessTokenLoader
    @Interleaved private var token: KeptToken

    /// Creates a service without a token.
    ///
    /// - Parameters:
    ///   - loader: The source of new tokens; it must answer on the thread on which the service is used.
    ///   - clock: The clock by which the token's validity is judged.
    package init(loader: some AccessTokenLoader, clock: some Clock<Duration> = ContinuousClock()) {
        self.loader = loader
        _token = Interleaved(wrappedValue: KeptToken(clock: clock), "token")
    }

    /// Passes the cached token at once, or loads one for this caller alone.
    package func retrieveToken(then handler: @escaping Handler) {
        if let token = token.valid { return handler(.success(token)) }
        // The race: until this load ends, nothing tells the next caller that it has begun.
        let service = UncheckedWeakBox(self)
        loader.load { result in
            service.object?.token.keep(try? result.get())
            handler(result)
        }
    }

    /// Forgets the token: the sign-out that readers of the articles would write, since the articles have none.
    ///
    /// A load that is under way will undo it.
    package func signOut() {
        token.keep(nil)
    }
}
