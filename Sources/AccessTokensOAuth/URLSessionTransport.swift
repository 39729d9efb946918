#if URLSession
import Foundation
public import TokenServiceConcurrency
import TokenServiceHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport over `URLSession` that remembers nothing: no cookies, no cache, no stored credentials, no redirects.
///
/// A value without state: any number of sends run independently. Each has a session of its own that ends with it, so
/// that nothing outlives an exchange; tokens are too rare for connections to be worth keeping. A connection that is never
/// used twice is also what keeps libcurl from sending a request again. Its price on Linux: Foundation keeps a processor busy while
/// it waits on a fresh connection, 2.7 s of its time for a token that takes 3 s.
///
/// A request without TLS, which only this machine itself gets, is refused where the environment of a Linux process names a proxy
/// for it (`http_proxy`, `all_proxy`) and `no_proxy` does not name the host: the proxy would read the secrets.
///
/// On Linux some answers end the process inside Foundation (Swift 6.3), before any code of ours hears of them:
/// - a connection that is closed between two lines of the header (swift-corelibs-foundation#5285, until Swift 6.4);
/// - a chunked answer with a trailer;
/// - a redirect without a scheme to a host that is an IPv6 address (`//[::1]/`) or has percent-encoded characters
///   (`//a%2fb/`, `//a%40b/`, `//a%00b/`);
/// - a `Content-Length` between 9223372036854775296 and 9223372036854775807.
///
/// Three things make all sessions of the process wait:
/// - an answer with tens of thousands of header lines, which Foundation reads for seconds;
/// - an exchange that is given up while the host's name is looked up, until the lookup has ended;
/// - a redirect with a long body, which Foundation keeps in memory and copies again and again while the server sends without a pause.
///
/// Time limits and cancellations hold all the same.
///
/// A program that must bear such a server brings a ``TokenTransport`` over an HTTP client of its own.
public struct URLSessionTransport: TokenTransport {
    /// How long one exchange may take altogether, from the connection to the last byte.
    package let timeLimit: Duration

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
        do {
            let answer = try await Self.answer(
                to: URLRequest(request), bodyLimit: TokenResponse.maximumBodySize, timeLimit: timeLimit)
            return TokenResponse(status: answer.status, headers: answer.headers, body: answer.body)
        } catch let failure as ExchangeFailure {
            throw OAuthError(failure, timeLimit: timeLimit)
        }
    }

    /// Sends any request, once.
    ///
    /// - Throws: `ExchangeFailure`, ``OAuthError`` with the code `invalidConfiguration`, or `CancellationError`.
    static func answer(to request: URLRequest, bodyLimit: Int, timeLimit: Duration) async throws -> Answer {
        try request.requirePrivacy()
        try Task.checkCancellation()
        let exchange = Exchange(bodyLimit: bodyLimit, limits: TimeLimits(whole: timeLimit))
        NetworkSession(configuration: .forgetful(timeLimit), challenges: .returnToCaller).send(request, as: exchange)
        return try await exchange.answer()
    }
}

extension URLRequest {
    fileprivate init(_ request: TokenRequest) {
        self.init(url: request.url)
        httpMethod = "POST"
        httpBody = request.body
        allHTTPHeaderFields = request.headers
        httpShouldHandleCookies = false
    }

    /// Throws if a proxy would read the request.
    fileprivate func requirePrivacy() throws(OAuthError) {
        guard url?.scheme?.lowercased() != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: url?.host ?? "")
        else { return }
        throw OAuthError(.invalidConfiguration(objection))
    }
}

extension OAuthError {
    /// The network's error: its own text names hosts and causes, no secret, since the URL carries none.
    fileprivate init(_ failure: ExchangeFailure, timeLimit: Duration) {
        switch failure {
        case .timedOut(let underlying):
            self.init(.timedOut(timeLimit))
            self.underlying = underlying
        case .tooLong: self.init(.unreadableResponse("it is longer than 1 MiB"))
        case .connection(let detail, let underlying):
            self.init(connection: detail, underlying)
        }
    }
}

/// What a transport says of itself: never a session, which holds the requests in flight with the client's credentials.
extension URLSessionTransport: Redacted {
    /// The time limit.
    public var description: String { "URLSessionTransport(time limit \(timeLimit))" }
}
#else
public import TokenServiceConcurrency

/// Stands in for the transport over `URLSession` in a program that is built without the trait `URLSession`.
///
/// Give each client, loader and revocation a ``TokenTransport`` of your own.
public struct URLSessionTransport: TokenTransport, Redacted {
    /// Creates what can send nothing.
    public init() {}

    /// Sends nothing.
    ///
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`.
    @concurrent public func send(_ request: TokenRequest) async throws -> TokenResponse {
        throw OAuthError(
            .invalidConfiguration("this program is built without the package's trait URLSession, so it must bring a transport"))
    }

    /// The type's name.
    public var description: String { "URLSessionTransport(not built in)" }
}
#endif
