#if URLSession
#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// A transport over `URLSession` without cookies, cache, stored credentials or redirects.
///
/// A value without state: any number of sends run independently. Each has its own session, which ends with it, so that nothing
/// outlives an exchange; tokens are loaded too rarely to make keeping connections worthwhile. A connection that is never reused
/// also prevents libcurl from sending a request again. The cost on Linux: Foundation keeps a processor busy while it waits on a
/// new connection, for 2.7 s when a token takes 3 s.
///
/// A request without TLS, to this machine itself, is refused if the environment of a Linux process names a proxy for it
/// (`http_proxy`, `all_proxy`) and `no_proxy` does not name the host: the proxy would read the secrets.
///
/// On Linux some answers crash the process inside Foundation (Swift 6.3), before our code receives them:
/// - a connection that is closed between two lines of the header (swift-corelibs-foundation#5285, until Swift 6.4);
/// - a chunked answer with a trailer;
/// - a redirect without a scheme to a host that is an IPv6 address (`//[::1]/`) or has percent-encoded characters
///   (`//a%2fb/`, `//a%40b/`, `//a%00b/`);
/// - a `Content-Length` between 9223372036854775296 and 9223372036854775807.
///
/// Three things block all sessions of the process:
/// - an answer with tens of thousands of header lines, which Foundation reads for seconds;
/// - an exchange that is given up while the host's name is looked up, until the lookup has ended;
/// - a redirect with a long body, which Foundation keeps in memory and copies again and again while the server sends without a
///   pause.
///
/// Time limits and cancellations still apply.
///
/// A program that must cope with such servers needs a ``TokenTransport`` over an HTTP client of its own.
public struct URLSessionTransport: TokenTransport {
    /// Creates a transport.
    public init() {}

    /// Sends a request, once, and returns the answer, also when that is a redirect.
    ///
    /// - Throws: ``TransportError``, `invalidConfiguration` if a proxy would read it, or `CancellationError` promptly when its
    ///   task is cancelled.
    @concurrent public func send(_ request: TransportRequest) async throws -> TransportResponse {
        try Task.checkCancellation()
        let message = try URLRequest(request)
        let exchange = Exchange(bodyLimit: request.maximumBodySize, limits: TimeLimits(whole: request.timeLimit))
        NetworkSession(configuration: .forgetful(request.timeLimit), challenges: .returnToCaller).send(message, as: exchange)
        return try await exchange.answer()
    }
}

extension URLRequest {
    /// Throws if a proxy would read the request.
    fileprivate init(_ request: TransportRequest) throws(TransportError) {
        if request.url.scheme?.lowercased() != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: request.url.host ?? "")
        {
            throw .invalidConfiguration(objection)
        }
        self.init(url: request.url)
        httpMethod = request.method
        httpBody = request.method == "GET" ? nil : request.body
        allHTTPHeaderFields = request.headers
        httpShouldHandleCookies = false
    }
}

extension URLSessionConfiguration {
    /// A configuration that keeps nothing; its own time limits are only a fallback for the exchange's.
    package static func forgetful(_ timeLimit: Duration) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.timeoutIntervalForRequest = timeLimit / .seconds(1) + 1
        configuration.timeoutIntervalForResource = timeLimit / .seconds(1) + 1
        return configuration
    }
}

#else
/// A placeholder for the transport over `URLSession` in a program that is built without the trait `URLSession`.
///
/// Give each client, loader, revocation and store a ``TokenTransport`` of your own.
public struct URLSessionTransport: TokenTransport {
    /// Creates a transport that can't send anything.
    public init() {}

    /// Throws, since it can't send anything.
    ///
    /// - Throws: ``TransportError/invalidConfiguration(_:)``.
    @concurrent public func send(_ request: TransportRequest) async throws -> TransportResponse {
        throw TransportError.invalidConfiguration(
            "this program is built without the package's trait URLSession, so it must take a transport of the program's own")
    }
}
#endif
