public import AccessTokens
import TokenServiceConcurrency

/// Makes a `TokenLoader` of a loader with a completion handler.
///
/// The first call of the handler counts, from whichever thread it comes; later ones are ignored. A loader with a handler
/// cannot be cancelled: a load lasts until the handler is called or released, even if all its callers have left.
public struct CallbackTokenLoader: TokenLoader {
    private let loader: any AccessTokenLoader

    /// Wraps a loader.
    public init(_ loader: some AccessTokenLoader) {
        self.loader = loader
    }

    /// The wrapped loader's own word.
    public var isRepeatable: Bool { loader.isRepeatable }

    /// Calls the loader and waits for its handler.
    ///
    /// - Parameter previous: Not used: the articles' loader knows of no earlier token.
    /// - Throws: The loader's error; a clear one if it lets its handler go without calling it.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let answer = Answer()
        call(for: answer)
        return try await answer.value()
    }

    private func call(for answer: Answer) {
        let promise = Promise(answer)
        loader.load { promise.keep(with: $0) }
    }
}

/// The first answer of a handler, which one task waits for: a `SingleResult` of a known type, whose end needs no look at its metadata.
private final class Answer: Sendable {
    private struct State {
        var result: Result<AccessToken, any Error>?
        /// Resumed exactly once: it is put here if there is no result, and taken out to be resumed.
        var waiting: WaitingTask?
    }

    private let state = Lock(State())

    func complete(with result: () -> Result<AccessToken, any Error>) {
        let waiting = state.withLock { state -> WaitingTask? in
            guard state.result == nil else { return nil }
            state.result = result()
            return state.waiting.take()
        }
        waiting?.resume()
    }

    func value() async throws -> AccessToken {
        await WaitingTask.suspend { task in
            let isComplete = state.withLock { state in
                if state.result == nil { state.waiting = task }
                return state.result != nil
            }
            if isComplete { task.resume() }
        }
        guard let result = state.withLock({ $0.result }) else { throw CancellationError() }
        return try result.get()
    }
}

/// What the handler holds: if it goes before it was called, no answer will ever come.
private final class Promise: Sendable {
    private let answer: Answer

    init(_ answer: Answer) {
        self.answer = answer
    }

    deinit {
        answer.complete { .failure(HandlerDropped()) }
    }

    func keep(with result: Result<AccessToken, any Error>) {
        answer.complete { result }
    }
}

/// A loader let its completion handler go without calling it.
struct HandlerDropped: Error, CustomStringConvertible {
    let description = "The loader released its completion handler without calling it: call it on every path, also on failure."
}
