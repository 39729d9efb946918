import Dispatch
public import Foundation
import TokenServiceConcurrency

/// Performs requests for one owner, a screen for example, and cancels them when it is released.
///
/// ```swift
/// let loader = factory.makeLoader(queue: .main)
/// let movies = try await loader.perform(Request(url: moviesURL), as: [Movie].self)
/// ```
///
/// A loader shares only a session, a cache and a token service with the other loaders of its ``DataLoaderFactory``: cancelling
/// its requests doesn't affect theirs. All methods may be called concurrently, from any thread.
///
/// **The scope of the work is the owner's lifetime**: running requests don't keep their loader alive. A call of the async
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

    /// Performs a request and returns the response, whose status is a success.
    ///
    /// The current token is attached where it belongs (``OriginTokens``). If the server refuses the token with a 401, it is
    /// invalidated, and the request is sent once more with a new one. However many requests are refused at the same time, there
    /// is one load, and refusals cause at most 5 loads in 30 s: until another may start, the request is sent once more with the
    /// same token, and if that is refused, too, the `TokenServiceError` says when. A request waits for its tokens no longer than
    /// the session's `timeoutIntervalForResource`, counted from its start. A request belongs to the session in which this was called: after a sign-out it gets no token of the next
    /// user, but fails with the error `reset`. Redirects are followed, without the token if they lead to another origin. Nothing
    /// else is repeated, except by `URLSession` itself: if a reused connection ends without a response, it may send a `GET` or
    /// `HEAD` again on the next one.
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

    /// Performs a request and returns the value decoded from the response; otherwise like ``perform(_:)``.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - type: The type of the value.
    ///   - decoder: Decodes the body, outside the caller's actor.
    public func perform<Value: Decodable & Sendable>(
        _ request: Request, as type: Value.Type, using decoder: JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        try await Self.decode(perform(request), as: type, using: decoder)
    }

    @concurrent private static func decode<Value: Decodable & Sendable>(
        _ response: Response, as type: Value.Type, using decoder: JSONDecoder
    ) async throws -> Value {
        try response.decoded(as: type, using: decoder)
    }

    /// Performs a request and calls the handler with the outcome, once, on the loader's queue.
    ///
    /// After the request is cancelled, alone, with all others, or by the loader's release, the handler is never called, and its
    /// captures are released. See ``StatefulRequest/cancel()`` for the one exception. Otherwise like ``perform(_:)``.
    ///
    /// With a loader that was made with `queue: .main`, a class on the main actor wraps its handler's lines in
    /// `MainActor.assumeIsolated { … }`.
    ///
    /// - Returns: The running request, to watch or to cancel; it continues if you don't keep it.
    @discardableResult
    public func perform(
        _ request: Request, then handler: @escaping @Sendable (Result<Response, any Error>) -> Void
    ) -> StatefulRequest {
        start(request, then: handler)
    }

    /// Starts a request and returns it with its state; otherwise like ``perform(_:)``.
    ///
    /// - Returns: The running request, to watch, to wait for or to cancel; it continues if you don't keep it.
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
        // Start the call here, not in the task: the task may begin after a sign-out, and would then get the next user's token.
        let call = Result { () throws(DataLoadingError) in try runner.call(request) }
        // Neither closure may retain the loader; otherwise releasing it wouldn't cancel the request.
        stateful.start(on: queue) { [runner] report in
            try await runner.response(to: call.get(), reporting: report)
        } then: { [running] in
            running.remove(number)
        }
        return stateful
    }
}

/// The description leaves out the session, which holds the requests in flight with their tokens.
///
/// On Linux reflecting a `URLSession` with running tasks also crashes the process.
extension DataLoader: Redacted {
    /// How many requests are running.
    package var text: String { "DataLoader(\(running.count) under way)" }
}

/// The requests of one loader that have not ended.
final class RunningRequests: Sendable {
    private struct Requests {
        var lastNumber = 0
        var running: [Int: StatefulRequest] = [:]
    }

    private let requests = Lock(Requests())

    var count: Int { requests.withLock { $0.running.count } }

    /// Adds a request, and returns the number for removing it.
    func add(_ request: StatefulRequest) -> Int {
        requests.withLock { requests in
            requests.lastNumber += 1
            requests.running[requests.lastNumber] = request
            return requests.lastNumber
        }
    }

    func remove(_ number: Int) {
        // Release the entry after unlocking: the request may go with it, which runs foreign code.
        _ = requests.withLock { $0.running.removeValue(forKey: number) }
    }

    /// Cancels all running requests, in the order in which they began.
    func cancelAll() {
        let running = requests.withLock { $0.running }
        for (_, request) in running.sorted(by: { $0.key < $1.key }) { request.cancel() }
    }
}
