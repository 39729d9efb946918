public import AccessTokens
public import Dispatch

/// The articles' token service: completion handlers on a queue, over the state of a `TokenService`.
///
/// Every handler is called exactly once, on the queue, in the order of the calls, never on the caller's stack; also if this
/// object is released meanwhile, if the loader never answers (time-out) or answers twice, or if the queue is concurrent.
/// Methods may be called from any thread. A call made before a reset is a call before the fence.
///
/// `queue.sync {}` waits for the handlers of calls made before it that found a valid token; a miss takes as long as its load.
/// Handlers that are ready together share a dispatch; hits called while they run join it, 64 at most, so that handlers that ask
/// again leave the queue to others.
public final class AccessTokenService: Sendable {
    /// What a call ends with.
    public typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// The service that async callers share with this one.
    public let service: TokenService
    private let line: CallbackLine

    /// Creates a service of its own for a loader with a completion handler.
    ///
    /// - Parameters:
    ///   - loader: What gets a new token.
    ///   - queue: Where handlers are called.
    public convenience init(loader: some AccessTokenLoader, queue: DispatchQueue = .init(label: "AccessToken")) {
        self.init(service: TokenService(loader: CallbackTokenLoader(loader)), queue: queue)
    }

    /// Creates a second door to a service, so that old and new code share one token and one load.
    ///
    /// - Parameters:
    ///   - service: The service that async callers use.
    ///   - queue: Where handlers are called.
    public convenience init(service: TokenService, queue: DispatchQueue = .init(label: "AccessToken")) {
        self.init(service: service) { work in queue.async(execute: work) }
    }

    /// Creates a service whose queue is anything that runs a block later.
    package init(service: TokenService, enqueue: @escaping @Sendable (_ work: @escaping @Sendable () -> Void) -> Void) {
        self.service = service
        line = CallbackLine(service: service, enqueue: enqueue)
    }

    /// Hands a valid access token to `handler`: the cached one, else that of the load which all callers share.
    ///
    /// - Parameter handler: Called once, on the queue, after the handlers of earlier calls. An error is a
    ///   `TokenServiceError`.
    public func retrieveToken(then handler: @escaping Handler) {
        line.retrieve(handler)
    }

    /// Drops a token that a resource server refused, if it is still the current one; see `TokenService.invalidate(_:)`.
    ///
    /// Calls of this object that follow see it done.
    ///
    /// - Parameters:
    ///   - token: The token that the refused request carried.
    ///   - handler: Called once, on the queue, in the order of the calls, when it has taken effect.
    public func invalidate(_ token: AccessToken, then handler: @escaping @Sendable () -> Void = {}) {
        line.perform { service, finish in
            service.invalidate(token)
            finish(handler)
        }
    }

    /// Puts a new token for the same principal in place; see `TokenService.replace(with:)`.
    ///
    /// Calls of this object that follow see it done.
    ///
    /// - Parameters:
    ///   - token: The new token, whose lifetime counts from now.
    ///   - handler: Called once, on the queue, in the order of the calls, when the store has saved the token; with what was
    ///     given up, and whether the store has the new token.
    public func replace(with token: AccessToken, then handler: @escaping @Sendable (SessionChange) -> Void = { _ in }) {
        raise(then: handler) { $0.place(token) }
    }

    /// Signs out; see `TokenService.reset()`.
    ///
    /// Calls of this object made before it are calls before the fence; those that follow see nothing from before.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls, when the store has removed its copy; with
    ///   what was given up, whose refresh tokens you may want to revoke, and whether the store has removed its token.
    public func reset(then handler: @escaping @Sendable (SessionChange) -> Void = { _ in }) {
        raise(then: handler) { $0.fence() }
    }

    private func raise(
        then handler: @escaping @Sendable (SessionChange) -> Void,
        fence: @escaping @Sendable (isolated TokenService) -> TokenService.Fence
    ) {
        line.perform { service, finish in
            let fence = fence(service)
            // The fence is there; what is waited for is the store's part.
            Task.detached(executorPreference: service.executor) { [service] in
                let change = await service.end(of: fence)
                finish { handler(change) }
            }
        }
    }
}
