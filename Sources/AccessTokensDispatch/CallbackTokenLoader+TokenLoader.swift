public import AccessTokens
import TokenServiceConcurrency

extension CallbackTokenLoader {
    /// This loader as a `TokenLoader`, for a service with async callers.
    ///
    /// ```swift
    /// let tokens = TokenService(loader: NetworkLoader(network: network).tokenLoader)
    /// ```
    ///
    /// The first call of the handler counts, whichever thread it comes from; later ones are ignored. A loader with a handler can't
    /// be cancelled: a load lasts until the handler is called or released, even if all its callers have left. If the loader
    /// releases its handler without calling it, the load ends with a specific error. A load may be repeated if this loader's may
    /// (``isRepeatable``).
    public var tokenLoader: some TokenLoader {
        CallbackLoad(isRepeatable: isRepeatable) { begin(replacing: $0) }
    }

    /// Begins a load; from then on, only the handler retains the promise.
    private func begin(replacing previous: AccessToken?) -> CallbackLoad.Beginning {
        let promise = Promise()
        if ServiceQueue.isPreferred {
            defer { ServiceQueue.runOutside { load(replacing: previous) { promise.keep(with: $0) } } }
            return promise.outcome
        }
        load(replacing: previous) { promise.keep(with: $0) }
        return promise.outcome
    }
}

/// The object that a handler holds: its release before the handler was called means that there will be no answer.
private final class Promise: Sendable {
    typealias Outcome = CallbackLoad.Beginning

    private struct State {
        /// `nil` until the first event.
        var outcome: Outcome?
    }

    private let state = Lock(State())

    deinit {
        keep(with: .failure(HandlerDropped()))
    }

    /// The result, or the object that will get it.
    var outcome: Outcome {
        state.withLock { state in
            let outcome = state.outcome ?? .awaited(SingleResult())
            state.outcome = outcome
            return outcome
        }
    }

    func keep(with result: @autoclosure () -> Result<AccessToken, any Error>) {
        let answer = state.withLock { state -> SingleResult<AccessToken>? in
            switch state.outcome {
            case nil: state.outcome = .kept(result())
            case .kept: break
            case .awaited(let answer): return answer
            }
            return nil
        }
        answer?.complete(with: result())
    }
}

/// A loader released its completion handler without calling it.
struct HandlerDropped: Error, CustomStringConvertible {
    let description = "The loader released its completion handler without calling it: call it on every path, including failures."
}
