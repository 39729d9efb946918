public import AccessTokens
import TokenServiceConcurrency

extension AccessTokenService {
    /// Drops a token that a resource server refused, if it is still the current one; see `TokenService.invalidate(_:)`.
    ///
    /// Calls of this object that follow see it done.
    ///
    /// - Parameters:
    ///   - token: The token that the refused request carried.
    ///   - handler: Called once, on the queue, in the order of the calls, when it has taken effect.
    public func invalidate(_ token: AccessToken, then handler: @escaping @Sendable () -> Void = {}) {
        line.perform { service, finish in
            service.refuse(token)
            finish(handler)
        }
    }

    /// Hands `handler` a token to send a refused request again with, of the same session; else the error `reset`.
    ///
    /// See `TokenService.retrieveToken(insteadOf:within:)`. Calls of this object that follow see the refused token dropped.
    ///
    /// - Parameters:
    ///   - refused: The token that the refused request carried.
    ///   - handler: Called once, on the queue, in the order of the calls.
    public func retrieveToken(insteadOf refused: AccessToken, then handler: @escaping Handler) {
        line.retrieve(insteadOf: refused, handler)
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
        raise(then: handler) { $0.put(token) }
    }

    /// Ends every pause after failures: the person tapped “try again”; see `TokenService.retryNow()`.
    ///
    /// Calls of this object that follow see it done.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls, when it has taken effect.
    public func retryNow(then handler: @escaping @Sendable () -> Void = {}) {
        line.perform { service, finish in
            service.endPauses()
            finish(handler)
        }
    }

    /// Signs out; see `TokenService.reset()`.
    ///
    /// Calls of this object made before it are calls before the fence; those that follow see nothing from before.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls, when the store has removed its copy; with
    ///   what was given up, whose refresh tokens you may want to revoke, and whether the store has removed its token.
    public func reset(then handler: @escaping @Sendable (SessionChange) -> Void = { _ in }) {
        raise(then: handler) { $0.signOut() }
    }

    private func raise(
        then handler: @escaping @Sendable (SessionChange) -> Void,
        fence: @escaping @Sendable (isolated TokenService) -> TokenService.Fence
    ) {
        line.perform { service, finish in
            let fence = fence(service)
            // The fence is there; what is waited for is the store's part.
            Task.detached(on: service.executor) { [service] in
                let change = await service.end(of: fence)
                finish { handler(change) }
            }
        }
    }
}
