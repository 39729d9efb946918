import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionTransport {
    /// One request and its answer: the delegate of a session that exists for this exchange alone.
    ///
    /// The first end wins: the session's, the time limit, the cancellation of the caller's task, or too long a body.
    final class Exchange: NSObject, Sendable {
        private let answer = SingleResult<TokenResponse>()
        private let body = Lock(Data())
        private let transfer = Transfer()

        /// Sends the request and returns the answer; to be called once.
        func run(_ request: TokenRequest, timeLimit: Duration) async throws -> TokenResponse {
            try Task.checkCancellation()
            let limit = TimeLimit(seconds: timeLimit / .seconds(1)) { [answer] in
                answer.complete(with: .failure(OAuthError(.timedOut, detail: "\(timeLimit)")))
            }
            defer { limit.cancel() }
            NetworkSession(configuration: .forgetful(timeLimit), delegate: self).send(URLRequest(request), as: transfer)
            do {
                return try await withTaskCancellationHandler {
                    try await answer.value()
                } onCancel: {
                    answer.complete(with: .failure(CancellationError()))
                }
            } catch {
                transfer.end()
                throw error
            }
        }
    }
}

extension URLSessionTransport.Exchange: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        guard !transfer.isOver else { return }
        #endif
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let fits = body.withLock { body in
            guard data.count <= TokenResponse.maximumBodySize - body.count else { return false }
            body += data
            return true
        }
        if !fits { answer.complete(with: .failure(OAuthError(.unreadableResponse, detail: "it is longer than 1 MiB"))) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
        guard !transfer.isOver else { return }
        // A 401. On Linux the challenge follows the complete answer, and the default handling would wait for ever.
        finish(task)
        completionHandler(.cancelAuthenticationChallenge, nil)
        #else
        let isAboutTLS = [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate]
            .contains(challenge.protectionSpace.authenticationMethod)
        completionHandler(isAboutTLS ? .performDefaultHandling : .rejectProtectionSpace, nil)
        #endif
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { answer.complete(with: .failure(OAuthError(transport: error))) } else { finish(task) }
    }

    private func finish(_ task: URLSessionTask) {
        guard let http = task.response as? HTTPURLResponse else {
            return answer.complete(with: .failure(OAuthError(.connectionFailed, detail: "the answer is not HTTP")))
        }
        var headers: [String: String] = [:]
        for case let (name as String, value as String) in http.allHeaderFields { headers[name] = value }
        let body = body.withLock { $0 }
        answer.complete(with: .success(TokenResponse(status: http.statusCode, headers: headers, body: body)))
    }
}

extension OAuthError {
    /// The network's error: its own text names hosts and causes, no secret, since the URL carries none.
    fileprivate init(transport error: any Error) {
        let isTimeOut = (error as? URLError)?.code == .timedOut
        self.init(isTimeOut ? .timedOut : .connectionFailed, detail: isTimeOut ? nil : error.localizedDescription)
        underlying = error
    }
}
