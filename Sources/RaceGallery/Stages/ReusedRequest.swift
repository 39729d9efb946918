import TokenServiceConcurrency

/// The second article's first trap: a request that is a class and holds the state of its execution.
///
/// Right: everything that holds the request can follow one execution at a time.
///
/// Wrong, since nothing keeps a caller from performing the same request again:
/// - two executions **share one state**: it is completed as soon as one of them is, and both get the first answer;
/// - cancelling it for one owner cancels it for the other, and performing it again undoes a cancellation.
///
/// The state has a lock, so that the trap is a race of events and not of memory. The right design: a request that is a value, and
/// a state that each execution creates from it (`Request` and `StatefulRequest` in `DataLoading`).
package final class ReusedRequest: Sendable {
    /// The progress of an execution, without saying which one.
    package enum State: Sendable, Equatable {
        /// It hasn't been executed.
        case pending
        /// An execution is under way.
        case ongoing
        /// An execution has ended, with its answer, or with `nil` if it was cancelled.
        case completed(String?)
    }

    /// The requested path.
    package let path: String
    private let shared = Lock(State.pending)

    /// Creates a request that has not been performed.
    package init(path: String) { self.path = path }

    /// The state of one of the executions.
    package var state: State { shared.withLock { $0 } }

    /// Ends the execution, even if it is another owner's: its answer is ignored.
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
            // The race: another execution may have ended or been cancelled.
            if state == .ongoing { state = .completed(answer) }
            guard case .completed(let result) = state else { return nil }
            return result
        }
    }
}
