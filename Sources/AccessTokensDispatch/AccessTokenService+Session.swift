public import AccessTokens
import TokenServiceConcurrency

extension AccessTokenService {
    /// Drops a token that a resource server refused, if it is still the current one; see `TokenService.invalidate(_:)`.
    ///
    /// When it returns, no caller of the service gets that token any more.
    ///
    /// - Parameters:
    ///   - token: The token that the refused request carried.
    ///   - handler: Called once, on the queue, in the order of the calls, when the call has taken effect.
    public func invalidate(_ token: AccessToken, then handler: @escaping @Sendable () -> Void = {}) {
        service.refuse(token)
        line.perform { service, finish in
            service.settle()
            finish(handler)
        }
    }

    /// Passes `handler` a token of the same session for resending a refused request, or else the error `reset`.
    ///
    /// See `TokenService.retrieveToken(insteadOf:within:)`. When it returns, no caller of the service gets the refused token
    /// any more.
    ///
    /// - Parameters:
    ///   - refused: The token that the refused request carried.
    ///   - handler: Called once, on the queue, in the order of the calls.
    /// - Returns: The call, to cancel it; it goes on if you don't keep it, and the token is dropped in any case.
    @discardableResult
    public func retrieveToken(insteadOf refused: AccessToken, then handler: @escaping Handler) -> Call {
        Call(self, at: line.retrieve(insteadOf: refused, handler))
    }

    /// Passes `handler` a token that is good for at least this long, if the server issues such tokens.
    ///
    /// See `TokenService.retrieveToken(validFor:within:)`. No other handler waits for this one.
    ///
    /// - Parameters:
    ///   - minimum: How long the token must be good, to its real expiry.
    ///   - handler: Called once, on the queue, as soon as there is an answer.
    public func retrieveToken(validFor minimum: Duration, then handler: @escaping Handler) {
        let seen = service.currentGeneration
        line.retrieve(handler) { try await $0.retrieveToken(validFor: minimum, seen: seen) }
    }

    /// Loads a token whatever is cached, and passes `handler` one whose load began after this call; see
    /// `TokenService.reloadToken(within:)`.
    ///
    /// No other handler waits for this one.
    ///
    /// - Parameter handler: Called once, on the queue, as soon as there is an answer.
    public func reloadToken(then handler: @escaping Handler) {
        let seen = service.currentGeneration
        line.retrieve(handler) { try await $0.reloadToken(seen: seen) }
    }

    /// Installs a new token for the same principal; see `TokenService.replace(with:)`.
    ///
    /// When it returns, no caller of the service gets the old token any more.
    ///
    /// - Parameters:
    ///   - token: The new token, whose lifetime counts from now.
    ///   - handler: Called once, on the queue, in the order of the calls, when the store has saved the token. It gets what was
    ///     given up, and whether the store has the new token.
    public func replace(with token: AccessToken, then handler: @escaping @Sendable (SessionChange) -> Void = { _ in }) {
        complete(service.put(token), then: handler)
    }

    /// Passes `handler` whether a user is signed in, from memory or else from the store; see `TokenService.signInState()`.
    ///
    /// Starts no load. Like every handler, this one is called after those of earlier calls, even if these wait for a load; so ask
    /// before you ask for a token. From memory alone, `service.cachedSignInState` says it at once.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls.
    public func signInState(then handler: @escaping @Sendable (SignInState) -> Void) {
        line.perform { service, finish in
            Task.detached(on: service.executor) { [service] in
                let state = await service.signInState()
                finish { handler(state) }
            }
        }
    }

    /// Ends every pause after failures, when the user taps “try again”; see `TokenService.retryNow()`.
    ///
    /// Later calls of this object see its effect.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls, when the call has taken effect.
    public func retryNow(then handler: @escaping @Sendable () -> Void = {}) {
        line.perform { service, finish in
            service.endPauses()
            finish(handler)
        }
    }

    /// Signs out; see `TokenService.reset()`.
    ///
    /// It has taken effect when it returns: earlier calls belong to the session before it, and later ones see nothing from
    /// before, whether they are calls of this object, of another one over the same service, of another key that shares the
    /// grant, or `await`.
    ///
    /// - Parameter handler: Called once, on the queue, in the order of the calls, when the store has removed its copy. It gets
    ///   what was given up, whose refresh tokens you may want to revoke, and whether the store has removed its token.
    public func reset(then handler: @escaping @Sendable (SessionChange) -> Void = { _ in }) {
        complete(service.signOut(), then: handler)
    }

    /// Takes a fence to the actor, and calls the handler when the store has done its part.
    private func complete(_ fence: TokenService.Fence, then handler: @escaping @Sendable (SessionChange) -> Void) {
        line.perform { service, finish in
            service.settle()
            Task.detached(on: service.executor) { [service] in
                let change = await service.end(of: fence)
                finish { handler(change) }
            }
        }
    }
}
