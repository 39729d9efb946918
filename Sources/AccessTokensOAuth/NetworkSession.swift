#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// A `URLSession` that no task ever waits for: whatever is asked of it is asked on its delegate's queue.
///
/// On Linux `dataTask(with:)`, `resume()`, `suspend()`, `cancel()` and `invalidateAndCancel()` wait for one serial queue, on
/// which all sessions of the process also read what arrives (swift-corelibs-foundation#5016). For an answer with 20,000 header
/// lines that takes seconds, and a thread of the cooperative pool that waited there would be missing everywhere else.
package final class NetworkSession: Sendable {
    #if canImport(FoundationNetworking)
    /// One queue for all sessions: however many of their calls wait for Foundation, they keep one thread waiting.
    private static let delegateQueue: OperationQueue? = {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }()
    #else
    private static let delegateQueue: OperationQueue? = nil
    #endif

    private let session: URLSession

    /// Creates a session, which keeps its delegate until its last transfer has ended.
    package init(configuration: URLSessionConfiguration, delegate: any URLSessionDelegate) {
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: Self.delegateQueue)
    }

    deinit {
        // Returns at once, also on Linux.
        session.finishTasksAndInvalidate()
    }

    /// Sends a request, unless its transfer is over when its turn comes.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - transfer: What can end it, used for this request alone. It doesn't keep this session from ending.
    ///   - willStart: Told of the task on the delegate's queue, before any callback.
    package func send(
        _ request: URLRequest, as transfer: Transfer,
        willStart: @escaping @Sendable (URLSessionTask) -> Void = { _ in }
    ) {
        transfer.enter(session)
        session.delegateQueue.addOperation { [self] in
            guard !transfer.isOver else { return }
            let task = session.dataTask(with: request)
            willStart(task)
            transfer.begin(task)
        }
    }
}
