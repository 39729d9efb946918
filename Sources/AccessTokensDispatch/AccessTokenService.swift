public import AccessTokens
public import Dispatch
import TokenServiceConcurrency

/// The articles' token service: completion handlers on a queue, with the state of a `TokenService`.
///
/// Every handler is called exactly once, unless its call is cancelled, on the queue, in the order of the calls, never on the
/// caller's stack. This holds even if this object is released meanwhile, if the loader never answers (time-out) or answers twice,
/// or if the queue is concurrent. Methods may be called from any thread. A call made before a reset belongs to the session before
/// it. Only two results are delivered ahead of their turn: that of a call whose own limit has passed, and the error of a loader
/// that would wait for itself. Another object over the same service has an order of its own, even with the same queue.
///
/// `queue.sync {}` waits for the handlers of earlier calls that found a valid token; a miss takes as long as its load. Handlers
/// that are ready together share a dispatch. Hits called while they run join it, 64 at most, so that handlers that call again
/// leave the queue to others.
public final class AccessTokenService: Sendable {
    /// Called with the result of a call.
    public typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// The service that async callers share with this one.
    public var service: TokenService { line.service }
    let line: CallbackLine

    /// A call whose handler is waiting to be called, to cancel it when its owner no longer needs the token.
    ///
    /// A call goes on if you don't keep this value, which keeps the service alive. It may be used concurrently, from any thread.
    public struct Call: Sendable {
        @usableFromInline let service: AccessTokenService
        @usableFromInline let place: CallbackLine.Position

        // Inlinable: most callers discard the value, and then no reference is counted for it.
        @inlinable
        init(_ service: AccessTokenService, at place: CallbackLine.Position) {
            self.service = service
            self.place = place
        }

        /// Cancels the call: its handler isn't called, and its captures are released.
        ///
        /// After this the handler isn't called, unless another thread is already calling it; to rule that out, call this on the
        /// service's queue, if that is serial. The captures are released before this returns, or, while the queue is calling
        /// handlers, a moment later. The load goes on for the other callers and, if nobody waits, its token is kept, as when an
        /// async caller is cancelled. A refused token stays refused. Cancelling twice, or too late, does nothing.
        public func cancel() { service.line.cancel(place) }
    }

    /// Creates a service of its own for a loader with a completion handler.
    ///
    /// - Parameters:
    ///   - loader: Gets new tokens.
    ///   - queue: Where handlers are called.
    ///   - policy: When tokens are refreshed, how long loads may take, how failures are paced.
    ///   - store: Keeps the token between runs of the program; `nil` to keep it nowhere. Asked at the first miss.
    ///   - environment: Clocks, jitter and executors; tests replace them.
    ///   - onDiscard: Called with each token that is given up although its grant may still be good at the server, so that you can
    ///     revoke it; see `TokenService.init`. Called in its own task, not on the queue.
    public convenience init(
        loader: some CallbackTokenLoader,
        queue: DispatchQueue = .init(label: "AccessToken"),
        policy: RefreshPolicy = RefreshPolicy(),
        store: consuming (any TokenStore)? = nil,
        environment: consuming TokenService.Environment = TokenService.Environment(),
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)? = nil
    ) {
        // `consuming` avoids a copy here.
        let service = TokenService(
            policy: policy, store: store, environment: environment, onDiscard: onDiscard, loader: loader.tokenLoader)
        self.init(service: service, queue: queue)
    }

    /// Creates a second interface to a service, so that old and new code share one token and one load.
    ///
    /// - Parameters:
    ///   - service: The service that async callers use.
    ///   - queue: Where handlers are called.
    public convenience init(service: TokenService, queue: DispatchQueue = .init(label: "AccessToken")) {
        self.init(service: service) { work in queue.async(execute: work) }
    }

    /// Creates a service whose queue is anything that runs a block later.
    package init(service: TokenService, enqueue: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void) {
        line = CallbackLine(service: service, enqueue: enqueue)
    }

    /// Passes a valid access token to `handler`: the cached one, or else the one from the load that all callers share.
    ///
    /// After a first failure the next call loads again at once; after that the pauses grow, and calls get the last error
    /// meanwhile. So a handler that always calls again doesn't reach the server each time: wait until the error's `retryAt`, or
    /// call ``retryNow(then:)`` first if the user asked for it.
    ///
    /// - Parameter handler: Called once, on the queue, after the handlers of earlier calls. An error is a
    ///   `TokenServiceError`.
    /// - Returns: The call, to cancel it; it goes on if you don't keep it.
    @discardableResult
    @inlinable
    public func retrieveToken(then handler: @escaping Handler) -> Call {
        Call(self, at: begin(within: nil, handler))
    }

    /// The same without a result, for code that passes the method as a function, or declares it in a protocol.
    @_disfavoredOverload
    public func retrieveToken(then handler: @escaping Handler) {
        _ = begin(within: nil, handler)
    }

    /// Passes a valid access token to `handler`, or the error `deadlineExceeded` if the call's own limit passes first.
    ///
    /// A call whose limit passes before its turn is answered at once, ahead of the calls before it: with its answer, if there is
    /// one already, or else with the error. Everything else keeps its order, and the load continues for the others.
    ///
    /// - Parameters:
    ///   - limit: How long this call waits at most, on the service's clock; `nil`: as long as the load may take. With zero or
    ///     less, a call starts nothing if it finds no valid token, or if an earlier operation has yet to take effect.
    ///   - handler: Called once, on the queue. An error is a `TokenServiceError`.
    /// - Returns: The call, to cancel it; it goes on if you don't keep it.
    @discardableResult
    @inlinable
    public func retrieveToken(within limit: Duration?, then handler: @escaping Handler) -> Call {
        Call(self, at: begin(within: limit, handler))
    }

    @usableFromInline
    func begin(within limit: Duration?, _ handler: @escaping Handler) -> CallbackLine.Position {
        line.retrieve(within: limit, handler)
    }
}

/// The description shows neither the token nor the captures of waiting handlers.
extension AccessTokenService: Redacted {
    package var text: String { "AccessTokenService" }
}

extension AccessTokenService.Call: Redacted {
    package var text: String { "AccessTokenService.Call" }
}
