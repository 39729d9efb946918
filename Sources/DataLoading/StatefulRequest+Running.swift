import Dispatch
import TokenServiceConcurrency

/// The loader's side of a started request.
extension StatefulRequest {
    /// Starts the work, which completes the state when it ends; call it once.
    ///
    /// - Parameters:
    ///   - queue: Where the handler is called.
    ///   - work: Reports progress, and ends with the response.
    ///   - end: Called last.
    func start(
        on queue: DispatchQueue,
        _ work: @escaping @Sendable (@escaping @Sendable (Progress) -> Void) async throws -> Response,
        then end: @escaping @Sendable () -> Void
    ) {
        let task = Task {
            let result: Result<Response, any Error>
            do { result = .success(try await work { self.change(to: .ongoing($0)) }) } catch { result = .failure(error) }
            change(to: .completed(result))
            guard inside.withLock({ $0.handler != nil }) else { return end() }
            queue.async {
                self.deliver()
                end()
            }
        }
        let wasCancelled = inside.withLock { inside in
            inside.task = task
            return inside.isCompleted
        }
        if wasCancelled { task.cancel() }
    }

    private func change(to state: State) {
        // Outside the lock: resuming a reader may call its executor, which is foreign code.
        inside.withLock { $0.change(to: state) }?.forEach { $0.changes.yield() }
    }

    /// Calls the handler, unless the request was cancelled first.
    private func deliver() {
        let (handler, state) = inside.withLock { inside in
            defer { inside.handler = nil }
            return (inside.handler, inside.state)
        }
        if case .completed(let result) = state { handler?(result) }
    }
}
