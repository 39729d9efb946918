import TokenServiceConcurrency

/// The second article's first trap: a request, as a class, that carries the state of its performance.
///
/// What it gets right: everything that holds the request can follow one performance at a time.
///
/// What is wrong with it, since nothing keeps a caller from performing the same request again:
/// - two performances **share one state**: it is called completed as soon as one of them is, and both get the answer that
///   comes first;
/// - cancelling it for one owner cancels it for the other, and performing it again undoes a cancellation.
///
/// The state has a lock, so that the trap is a race of events and not of memory. What is right: a request that is a value,
/// and a state that each performance makes of it (`Request` and `StatefulRequest` in `DataLoading`).
package final class ReusedRequest: Sendable {
    /// The progress of a performance; it doesn't say of which one.
    package enum State: Sendable, Equatable {
        /// It has not been performed.
        case pending
        /// A performance is under way.
        case ongoing
        /// A performance has ended, with its answer or with `nil` when it was cancelled.
        case completed(String?)
    }

    /// The requested path.
    package let path: String
    private let shared = Lock(State.pending)

    /// Creates a request that has not been performed.
    package init(path: String) { self.path = path }

    /// The state of some performance.
    package var state: State { shared.withLock { $0 } }

    /// Ends the performance, also another owner's: its answer will not count.
    package func cancel() { shared.withLock { $0 = .completed(nil) } }

    /// Performs the request and returns the result in its state.
    ///
    /// - Parameter fetch: Sends the request to the server.
    package func perform(
        with fetch: @Sendable @concurrent (_ path: String) async throws -> String
    ) async throws -> String? {
        shared.withLock { $0 = .ongoing }
        let answer = try await fetch(path)
        return shared.withLock { state in
            // The race: this may be the end of another performance, or the cancellation of one.
            if state == .ongoing { state = .completed(answer) }
            guard case .completed(let result) = state else { return nil }
            return result
        }
    }
}
