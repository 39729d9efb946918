import Dispatch
import TokenServiceConcurrency

/// A request that a loader has started, with its own state.
///
/// A ``DataLoader`` creates one each time it performs a ``Request``, so no two runs of the same request share a state. It does
/// not keep its loader alive: when the loader is released, the request is cancelled. All methods may be called concurrently, from
/// any thread.
public final class StatefulRequest: Sendable {
    /// Called with the result of a request.
    typealias Handler = @Sendable (Result<Response, any Error>) -> Void

    /// The progress of the request.
    public enum State: Sendable {
        /// Nothing has been sent yet: the request waits for a token.
        case pending
        /// The request or its response is being transferred.
        case ongoing(Progress)
        /// The request has ended, with a response, an error, or a `CancellationError`; no other state follows.
        case completed(Result<Response, any Error>)
    }

    /// How much of a request was sent and of its response received, in bytes; a second attempt or a redirect starts again.
    public struct Progress: Sendable, Hashable {
        /// How much of the request's body was sent.
        public internal(set) var bytesSent: Int64 = 0
        /// The length of the request's body; `nil` if it is unknown, or there is none.
        public internal(set) var bytesToSend: Int64?
        /// How much of the response's body was received.
        public internal(set) var bytesReceived: Int64 = 0
        /// The length of the response's body, as the server announced it; `nil` if it didn't, or sends none.
        public internal(set) var bytesToReceive: Int64?
    }

    struct Inside: Sendable {
        var state = State.pending
        /// Counts the changes of the state.
        var version = 1
        var handler: Handler?
        var task: Task<Void, Never>?
        var nextObserver = 0
        var observers: [Int: Observer] = [:]

        var isCompleted: Bool { if case .completed = state { true } else { false } }

        /// Changes the state, unless it is the last one; returns the observers, to be notified outside the lock.
        mutating func change(to next: State) -> [Observer]? {
            guard !isCompleted else { return nil }
            state = next
            version += 1
            return observers.values.filter { isCompleted || $0.wantsProgress }
        }
    }

    struct Observer: Sendable {
        let wantsProgress: Bool
        let changes: AsyncStream<Void>.Continuation
    }

    /// The request that was started.
    package let request: Request

    let inside: Lock<Inside>

    init(_ request: Request, then handler: Handler?) {
        self.request = request
        inside = Lock(Inside(handler: handler))
    }

    /// The current state.
    public var state: State { inside.withLock { $0.state } }

    /// The current state and each later one until the request is completed, for any number of readers.
    ///
    /// States are never out of order, and the last one is never missed; a slow reader misses some in between.
    public var states: some AsyncSequence<State, Never> & Sendable { States(of: self) }

    /// Returns the response as soon as there is one.
    ///
    /// - Throws: ``DataLoadingError``, `TokenServiceError`, or `CancellationError` if the request was cancelled. If the waiting
    ///   task is cancelled, `CancellationError` ends the wait but not the request.
    public func response() async throws -> Response {
        for await state in States(of: self, withProgress: false) {
            if case .completed(let result) = state { return try result.get() }
        }
        throw CancellationError()
    }

    /// Ends the request: closes its connection and completes its state with `CancellationError`.
    ///
    /// After this the handler isn't called, unless another thread is already calling it; to rule that out, call this on the
    /// loader's queue, if that is serial. A completed request keeps its response; its handler is released if it hasn't been called.
    public func cancel() {
        let (observers, task, handler) = inside.withLock { inside in
            defer { inside.handler = nil }
            return (inside.change(to: .completed(.failure(CancellationError()))), inside.task, inside.handler)
        }
        // The handler's captures are released here at the latest, outside the lock.
        _ = handler
        task?.cancel()
        observers?.forEach { $0.changes.yield() }
    }
}

extension Request {
    /// Creates the state for one run; the request itself has no state that runs could share.
    func makeStateful(then handler: StatefulRequest.Handler? = nil) -> StatefulRequest {
        StatefulRequest(self, then: handler)
    }
}

/// The description shows neither the request's contents and response, nor its handler's captures.
extension StatefulRequest: Redacted {
    /// The request and its state.
    package var text: String {
        let progress =
            switch state {
            case .pending: "pending"
            case .ongoing: "ongoing"
            case .completed: "completed"
            }
        return "StatefulRequest(\(request), \(progress))"
    }
}
