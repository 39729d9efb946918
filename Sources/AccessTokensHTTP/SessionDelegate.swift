#if URLSession
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// The delegate of a ``NetworkSession``: passes each callback about a task to the task's exchange.
final class SessionDelegate: NSObject, Sendable {
    private let exchanges = Lock<[Int: Exchange]>([:])
    private let challenges: ChallengePolicy
    /// Released together with this delegate, when the session has ended.
    private let belonging: (any Sendable)?

    init(challenges: ChallengePolicy, keeping belonging: (any Sendable)?) {
        self.challenges = challenges
        self.belonging = belonging
    }

    /// Assigns a task to an exchange before the task starts.
    func add(_ exchange: Exchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func remove(_ task: URLSessionTask) -> Exchange? {
        exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }
    }

    /// The exchange of a task, unless it is over.
    private func exchange(of task: URLSessionTask) -> Exchange? {
        let exchange = exchanges.withLock { $0[task.taskIdentifier] }
        return exchange?.transfer.isOver == false ? exchange : nil
    }
}

extension SessionDelegate: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        guard exchange(of: task) != nil else { return }
        #endif
        // A redirect is treated like any other answer: the caller decides where its secrets go.
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
        remove(task)?.transfer.complete()
        guard let error else { exchange?.finish(with: task.response); return }
        exchange?.fail(with: error, ofBody: task.originalRequest?.httpBody?.isEmpty == false)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        // A 401. On Linux the challenge follows the complete answer, and the default handling would never end.
        guard let exchange = exchange(of: task) else { return }
        exchange.finish(with: task.response)
        completionHandler(.cancelAuthenticationChallenge, nil)
        #else
        completionHandler(disposition(of: challenge), nil)
        #endif
    }

    #if !canImport(FoundationNetworking)
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposed: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let mayKeep = dataTask.originalRequest?.cachePolicy != .reloadIgnoringLocalCacheData
        completionHandler(mayKeep ? proposed : nil)
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if case .ask(let delegate) = challenges,
            delegate?.urlSession?(session, didReceive: challenge, completionHandler: completionHandler) != nil
        {
            return
        }
        completionHandler(disposition(of: challenge), nil)
    }

    private func disposition(of challenge: URLAuthenticationChallenge) -> URLSession.AuthChallengeDisposition {
        if case .ask = challenges { return .performDefaultHandling }
        let isAboutTLS = [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate]
            .contains(challenge.protectionSpace.authenticationMethod)
        return isAboutTLS ? .performDefaultHandling : .rejectProtectionSpace
    }
    #endif
}

/// How a session answers a server that asks for credentials.
///
/// On Linux it never does: the 401 is the exchange's answer, and the system alone judges certificates.
package enum ChallengePolicy: Sendable {
    /// The system judges certificates. Any other challenge is returned as the exchange's answer.
    case returnToCaller
    /// The delegate decides, if it implements the method; otherwise the system, which may use stored credentials.
    case ask((any URLSessionDelegate)?)
}
#endif
