import AccessTokensOAuth
import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The delegate of a session: passes on what the session says about a task to the exchange that the task belongs to.
final class Exchanges: NSObject, Sendable {
    private let current = Lock<[Int: Exchange]>([:])
    /// The delegate of the session that the user gave, which is asked whom to trust.
    private let delegate: (any URLSessionDelegate)?
    /// What is given back when the session has ended and lets go of its delegate.
    private let place: ConnectionLine.Place?

    init(trusting delegate: (any URLSessionDelegate)?, at place: ConnectionLine.Place? = nil) {
        self.delegate = delegate
        self.place = place
    }

    /// Sends the request of an exchange in the session whose delegate this is.
    func send(_ request: URLRequest, for exchange: Exchange, in session: NetworkSession) {
        session.send(request, as: exchange.transfer) { [self] task in
            current.withLock { $0[task.taskIdentifier] = exchange }
        }
    }

    private func remove(_ task: URLSessionTask) { _ = current.withLock { $0.removeValue(forKey: task.taskIdentifier) } }

    /// The exchange of a task, unless it was given up.
    private func exchange(of task: URLSessionTask) -> Exchange? {
        let exchange = current.withLock { $0[task.taskIdentifier] }
        return exchange?.transfer.isOver == false ? exchange : nil
    }
}

extension Exchanges: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        guard exchange(of: task) != nil else { return }
        #endif
        // The redirect is the answer; `Message.redirected(by:)` says what becomes of it.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(of: task)?.sent(totalBytesSent, of: totalBytesExpectedToSend)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.receive(data, of: dataTask.response?.expectedContentLength)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let exchange = exchange(of: task)
        remove(task)
        if let error { exchange?.fail(with: error) } else { exchange?.finish(with: task.response) }
    }

    #if canImport(FoundationNetworking)
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let exchange = exchange(of: task) else { return }
        // A 401. On Linux the challenge follows the complete answer, and the default handling would wait for ever.
        exchange.finish(with: task.response)
        completionHandler(.cancelAuthenticationChallenge, nil)
    }
    #else
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // Whom the user's own session trusts is not ours to change.
        let answered: Void? = delegate?.urlSession?(
            session, didReceive: challenge, completionHandler: completionHandler)
        if answered == nil { completionHandler(.performDefaultHandling, nil) }
    }
    #endif
}
