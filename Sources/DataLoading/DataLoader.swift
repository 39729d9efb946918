import Dispatch
public import Foundation

/// Performs requests for one owner, a screen for example, and cancels them when it is released.
///
/// ```swift
/// let loader = factory.makeLoader(queue: .main)
/// let movies = try await loader.perform(Request(url: moviesURL), as: [Movie].self)
/// ```
///
/// A loader shares nothing but a session, a cache and a token service with the other loaders of its ``DataLoaderFactory``:
/// cancelling one's requests leaves the others' alone. All methods may be called concurrently, from any thread.
///
/// **The scope of the work is the owner's lifetime**: running requests don't keep their loader alive. An async caller of
/// ``perform(_:)`` does while it waits; cancel its task, or call ``cancelAll()``.
public final class DataLoader: Sendable {
    private let runner: RequestRunner
    private let queue: DispatchQueue
    let running = RunningRequests()

    init(_ runner: RequestRunner, queue: DispatchQueue) {
        self.runner = runner
        self.queue = queue
    }

    deinit {
        running.cancelAll()
    }

    /// Performs a request and returns the answer, whose status is a success.
    ///
    /// The current token is attached where it belongs (``OriginTokens``). If the server refuses it with a 401, it is invalidated
    /// and the request is sent once more with a new one. However many requests are refused at the same time, there is one load.
    /// Redirects are followed, without the token when they lead to another origin. Nothing else is repeated, but for what
    /// `URLSession` does by itself: if a connection that was used before ends without an answer, a `GET` or `HEAD` may be sent
    /// again on the next one.
    ///
    /// - Throws: ``DataLoadingError``; `TokenServiceError` if there is no token; `CancellationError` at once when the calling
    ///   task, or the request, is cancelled.
    public func perform(_ request: Request) async throws -> Response {
        try Task.checkCancellation()
        let started = start(request)
        return try await withTaskCancellationHandler {
            try await started.response()
        } onCancel: {
            started.cancel()
        }
    }

    /// Performs a request and returns the value that the answer holds; else like ``perform(_:)``.
    ///
    /// - Parameters:
    ///   - request: What to ask for.
    ///   - type: The type of the value.
    ///   - decoder: What reads the body, away from the caller's actor.
    @concurrent public func perform<Value: Decodable & Sendable>(
        _ request: Request, as type: Value.Type, using decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await perform(request).decoded(as: type, using: decoder)
    }

    /// Performs a request and calls the handler with the outcome, once, on the loader's queue.
    ///
    /// After the request was cancelled, alone, with all others, or by the loader's release, the handler is never called, and what
    /// it holds is released. See ``StatefulRequest/cancel()`` for the one gap. Otherwise like ``perform(_:)``.
    ///
    /// - Returns: The running request, to watch or to cancel; it goes on if you don't keep it.
    @discardableResult
    public func perform(_ request: Request, then handler: @escaping StatefulRequest.Handler) -> StatefulRequest {
        start(request, then: handler)
    }

    /// Starts to perform a request and returns it with its state; otherwise like ``perform(_:)``.
    ///
    /// - Returns: The running request, to watch, to wait for or to cancel; it goes on if you don't keep it.
    public func start(_ request: Request) -> StatefulRequest {
        start(request, then: nil)
    }

    /// Cancels all running requests; later ones are not affected.
    public func cancelAll() {
        running.cancelAll()
    }

    private func start(_ request: Request, then handler: StatefulRequest.Handler?) -> StatefulRequest {
        let stateful = request.makeStateful(then: handler)
        let number = running.add(stateful)
        // Neither closure holds the loader, or its release could cancel nothing.
        stateful.start(on: queue) { [runner] report in
            try await runner.response(to: request, reporting: report)
        } then: { [running] in
            running.remove(number)
        }
        return stateful
    }
}
