import AccessTokens
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionTransport {
    /// One request and its answer: the delegate of a session that exists for this exchange alone.
    ///
    /// The first end wins: the session's, the cancellation of the caller's task, or too long a body.
    final class Exchange: NSObject, Sendable {
        private struct State {
            var response = TokenResponse(status: 0)
            /// Set once, and read after the caller was woken: nothing but the lock carries values between threads.
            var end: Result<Void, any Error>?
            var caller: CheckedContinuation<Void, Never>?
        }

        private let state = Lock(State())

        /// Sends the request and returns the answer; to be called once.
        func run(_ request: TokenRequest, timeLimit: Duration) async throws -> TokenResponse {
            let session = URLSession(configuration: .forgetful(timeLimit), delegate: self, delegateQueue: nil)
            // Whatever the end was, here the task ends, and the session lets go of its delegate.
            defer { session.invalidateAndCancel() }
            let task = session.dataTask(with: URLRequest(request))
            await withTaskCancellationHandler {
                await withCheckedContinuation { caller in
                    let hasEnded = state.withLock { state in
                        if state.end == nil { state.caller = caller }
                        return state.end != nil
                    }
                    if hasEnded { caller.resume() } else { task.resume() }
                }
            } onCancel: {
                end(.failure(CancellationError()))
            }
            return try state.withLock { state in
                try state.end?.get()
                return state.response
            }
        }

        private func end(_ result: Result<Void, any Error>) {
            let caller = state.withLock { state in
                defer { state.caller = nil }
                if state.end == nil { state.end = result }
                return state.caller
            }
            caller?.resume()
        }
    }
}

extension URLSessionTransport.Exchange: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let fits = state.withLock { state in
            guard state.response.body.count + data.count <= TokenResponse.maximumBodySize else { return false }
            state.response.body += data
            return true
        }
        if !fits { end(.failure(OAuthError(.unreadableResponse, detail: "it is longer than 1 MiB"))) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
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
        if let error { end(.failure(OAuthError(transport: error))) } else { finish(task) }
    }

    private func finish(_ task: URLSessionTask) {
        guard let http = task.response as? HTTPURLResponse else {
            return end(.failure(OAuthError(.connectionFailed, detail: "the answer is not HTTP")))
        }
        var headers: [String: String] = [:]
        for case let (name as String, value as String) in http.allHeaderFields { headers[name] = value }
        state.withLock { state in
            state.response.status = http.statusCode
            state.response.headers = headers
        }
        end(.success(()))
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
