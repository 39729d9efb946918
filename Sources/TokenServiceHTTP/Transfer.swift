import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session's task of one exchange, which may be ended at any time, also before there is a task.
final class Transfer: Sendable {
    private struct State {
        var isOver = false
        var session: URLSession?
        var task: URLSessionTask?
    }

    private let state = Lock(State())

    /// Whether it was ended: on Linux its delegate must not answer the session's questions any more.
    ///
    /// To answer for a task that was cancelled meanwhile ends the process there.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Notes where it will begin.
    func enter(_ session: URLSession) {
        state.withLock { $0.session = session }
    }

    /// Begins on the delegate's queue, unless it was ended while the task was made, which may take long.
    func begin(_ task: URLSessionTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        // If it is over, the operation that `end()` has queued cancels the task.
        if !isOver { task.resume() }
    }

    /// Ends the transfer and its connection, without waiting for either.
    func end() {
        let session = state.withLock { state in
            state.isOver = true
            return state.session
        }
        // Between two callbacks of the delegate: none of them meets a task that is half cancelled.
        session?.delegateQueue.addOperation { [self] in
            guard let task = state.withLock({ $0.task }), task.state != .completed else { return }
            #if canImport(FoundationNetworking)
            // On Linux a task that is cancelled while its transfer ends completes twice, which ends the process (“not in the
            // registry”). So its transfer is halted first, which takes two steps of the task's own queue; each call waits
            // for the step before it. A cache would add steps that can't be waited for, so no session here has one.
            for _ in 1...3 { task.suspend() }
            #endif
            task.cancel()
        }
    }
}
