/// A transport over `URLSession` that remembers nothing: no cookies, no cache, no stored credentials, no redirects.
///
/// A value without state: any number of sends run independently. Each has a session of its own that ends with it, so
/// that nothing outlives an exchange; tokens are too rare for connections to be worth keeping.
///
/// A request without TLS, which only this machine itself gets, is refused where the environment of a Linux process names a proxy
/// for it (`http_proxy`, `all_proxy`) and `no_proxy` does not name the host: the proxy would read the secrets.
///
/// On Linux, Foundation before Swift 6.4 ends the process when a server closes the connection between two lines of its
/// answer's header (swift-corelibs-foundation#5285): a program that must bear even that brings its own transport.
public struct URLSessionTransport: TokenTransport {
    /// How long one exchange may take altogether, from the connection to the last byte.
    public let timeLimit: Duration

    /// Creates a transport.
    ///
    /// - Parameter timeLimit: How long one exchange may take altogether, 20 s unless said otherwise: below
    ///   `RefreshPolicy.loadTimeout`, so that a load ends with the reason. Kept between 0.1 s and one hour.
    public init(timeLimit: Duration = .seconds(20)) {
        self.timeLimit = min(max(timeLimit, .milliseconds(100)), .seconds(3600))
    }

    /// Sends a request as a `POST`, once, and returns the answer, also when that is a redirect.
    ///
    /// - Throws: ``OAuthError`` with the code `connectionFailed`, `timedOut`, `unreadableResponse` (too long) or
    ///   `invalidConfiguration` (a proxy would read it), or `CancellationError` promptly when its task is cancelled.
    @concurrent public func send(_ request: TokenRequest) async throws -> TokenResponse {
        try request.requirePrivacy()
        let limit = timeLimit
        return try await withThrowingTaskGroup { race in
            race.addTask { try await Exchange().run(request, timeLimit: limit) }
            race.addTask {
                try await Task.sleep(for: limit)
                throw OAuthError(.timedOut, detail: "\(limit)")
            }
            defer { race.cancelAll() }
            guard let response = try await race.next() else { throw CancellationError() }
            return response
        }
    }
}
