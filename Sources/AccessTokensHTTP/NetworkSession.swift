#if URLSession
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// A `URLSession` that never blocks a task: it is called on its delegate's queue, and transfers are halted on another.
///
/// On Linux `dataTask(with:)`, `resume()`, `suspend()`, `cancel()` and `invalidateAndCancel()` wait for one serial queue, on
/// which all sessions of the process also read what arrives (swift-corelibs-foundation#5016). For an answer with 20,000 header
/// lines that takes seconds. A thread of the cooperative pool must not be blocked for so long.
package final class NetworkSession: Sendable {
    #if canImport(FoundationNetworking)
    /// One queue for all sessions: however many of their calls wait for Foundation, they block only one thread.
    private static let delegateQueue: OperationQueue? = {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        return queue
    }()
    #else
    private static let delegateQueue: OperationQueue? = nil
    #endif

    private let session: URLSession
    private let delegate: SessionDelegate

    /// Creates a session.
    ///
    /// - Parameters:
    ///   - configuration: The session's configuration. On Linux it must have no cache: see ``Transfer/end()``.
    ///   - challenges: How it answers servers that ask for credentials.
    ///   - belonging: An object that it keeps until its last exchange has ended.
    package init(
        configuration: URLSessionConfiguration, challenges: ChallengePolicy, keeping belonging: (any Sendable)? = nil
    ) {
        delegate = SessionDelegate(challenges: challenges, keeping: belonging)
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: Self.delegateQueue)
    }

    deinit {
        // Returns at once, also on Linux. The session keeps its delegate until its last task has ended.
        session.finishTasksAndInvalidate()
    }

    /// Sends the request of an exchange, unless the exchange is over when its turn comes.
    ///
    /// The exchange needs this session no longer than that.
    package func send(_ request: URLRequest, as exchange: Exchange) {
        let transfer = exchange.transfer
        transfer.enter(session)
        session.delegateQueue.addOperation { [self] in
            guard !transfer.isOver else { return }
            let task = session.dataTask(with: request)
            delegate.add(exchange, for: task)
            transfer.begin(task)
        }
    }
}
#endif
