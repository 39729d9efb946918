public import AccessTokens
import TokenServiceConcurrency

/// Makes a `TokenLoader` of a loader with a completion handler.
///
/// The first call of the handler counts, whichever thread it comes from; later ones are ignored. A loader with a handler can't be
/// cancelled: a load lasts until the handler is called or released, even if all its callers have left.
public struct CallbackTokenLoader: TokenLoader {
    private let loader: any AccessTokenLoader

    /// Wraps a loader.
    public init(_ loader: some AccessTokenLoader) {
        self.loader = loader
    }

    /// Whether the wrapped loader's loads may be repeated.
    public var isRepeatable: Bool { loader.isRepeatable }

    /// Calls the loader and waits for its handler.
    ///
    /// - Parameter previous: Ignored: the articles' loader takes no earlier token.
    /// - Throws: The loader's error, or a specific error if the loader releases its handler without calling it.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        switch call() {
        case .kept(let result): try result.get()
        case .awaited(let answer): try await answer.value()
        }
    }

    /// From here on, only the handler retains the promise.
    private func call() -> Promise.Outcome {
        let promise = Promise()
        loader.load { promise.keep(with: $0) }
        return promise.outcome
    }
}

/// The object that a handler holds: if it is released before the handler was called, no answer will ever come.
private final class Promise: Sendable {
    enum Outcome {
        /// The handler was called before the loader returned, so nothing has to wait.
        case kept(Result<AccessToken, any Error>)
        case awaited(SingleResult<AccessToken>)
    }

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
    let description = "The loader released its completion handler without calling it: call it on every path, also on failure."
}

/// The description leaves out the program's own loader, which may hold a client's secret.
extension CallbackTokenLoader: Redacted {
    package var text: String { "CallbackTokenLoader" }
}
