#if URLSession
import Dispatch
import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session's task of one exchange, which can be ended at any time, even before there is a task.
final class Transfer: Sendable {
    private struct State {
        var isOver = false
        var isCompleted = false
        var session: URLSession?
        var task: URLSessionTask?
    }

    /// Where all transfers are halted, one after another: however many wait for Foundation, they keep one thread waiting.
    private static let halts = DispatchQueue(label: "AccessTokensHTTP.Transfer")

    private let state = Lock(State())
    private let halt = DispatchGroup()

    /// Whether it was ended, after which its delegate on Linux must not answer the session's callbacks.
    ///
    /// Answering for a task that was cancelled meanwhile ends the process there.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Notes the session in which it will begin.
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
        let session = state.withLock { state -> URLSession? in
            defer { state.isOver = true }
            return state.isOver ? nil : state.session
        }
        // After a running callback, so that none answers for a half-cancelled task.
        session?.delegateQueue.addOperation { [self] in haltSoon() }
    }

    /// Ends the transfer from a callback of the delegate, ahead of data that is still queued.
    func endInCallback() {
        state.withLock { $0.isOver = true }
        haltSoon()
    }

    /// Notes that the task completes, in the delegate's last callback; waits for a halt that is under way.
    ///
    /// After that, its task may be neither suspended nor cancelled: it would complete twice.
    func complete() {
        state.withLock { $0.isCompleted = true }
        halt.wait()
    }

    /// Halts the task apart from the delegate's queue, since a halt waits while Foundation reads.
    ///
    /// Data that arrives meanwhile must not pile up in that queue, which continues and drops it. Half a megabyte of gzip took 560
    /// MiB otherwise.
    private func haltSoon() {
        Self.halts.async { [self] in
            let task = state.withLock { state -> URLSessionTask? in
                guard !state.isCompleted, let task = state.task else { return nil }
                halt.enter()
                return task
            }
            guard let task else { return }
            defer { halt.leave() }
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
#endif
