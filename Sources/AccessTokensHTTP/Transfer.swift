#if URLSession
import Dispatch
import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session task of one exchange, which can be ended at any time, even before the task exists.
final class Transfer: Sendable {
    private struct State {
        var isOver = false
        var isCompleted = false
        var session: URLSession?
        var task: URLSessionTask?
    }

    /// Where all transfers are halted, one after another: however many wait for Foundation, they block only one thread.
    private static let halts = DispatchQueue(label: "AccessTokensHTTP.Transfer")

    private let state = Lock(State())
    private let halt = DispatchGroup()

    /// Whether the transfer was ended; if so, its delegate must not answer the session's callbacks on Linux.
    ///
    /// There, answering for a task that has been cancelled crashes the process.
    var isOver: Bool { state.withLock { $0.isOver } }

    /// Notes the session in which the transfer will begin.
    func enter(_ session: URLSession) {
        state.withLock { $0.session = session }
    }

    /// Begins on the delegate's queue, unless it was ended while the task was being created, which may take long.
    func begin(_ task: URLSessionTask) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        // If the transfer is over, the operation that `end()` queued cancels the task.
        if !isOver { task.resume() }
    }

    /// Ends the transfer and its connection, without waiting for either.
    func end() {
        let session = state.withLock { state -> URLSession? in
            defer { state.isOver = true }
            return state.isOver ? nil : state.session
        }
        // Queued behind a running callback, so that none answers for a half-cancelled task.
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

    /// Halts the task off the delegate's queue, since a halt blocks while Foundation reads.
    ///
    /// Meanwhile that queue keeps draining and dropping incoming data. Otherwise half a megabyte of gzip took 560 MiB.
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
            // On Linux a task that is cancelled while its transfer ends completes twice, which crashes the process (“not in the
            // registry”). So its transfer is halted first, which takes two steps on the task's own queue; each call waits for the
            // previous step. A cache would add steps that can't be awaited, so sessions here have none.
            for _ in 1...3 { task.suspend() }
            #endif
            task.cancel()
        }
    }
}
#endif
