#if URLSession
import Foundation
import TokenServiceHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transport that needs no other package: `URLSession` on Apple platforms, a socket without TLS on Linux.
///
/// A value without state: any number of sends run independently, each once, over a connection of its own, without redirects,
/// cookies or a cache.
///
/// **On Linux** it refuses `https`. etcd's gateway adds a trailer to every error that it answers, “invalid auth token” or “no leader”,
/// and such an answer ends a process that uses `URLSession` there (Swift 6.3); nor does `URLSession` accept a private authority
/// there. For TLS, bring an ``EtcdTransport`` over an HTTP client of your own, or reach etcd through a proxy on this machine that
/// speaks TLS to it. Without TLS it asks no proxy, whatever the environment says.
///
/// **On Apple platforms** the system judges certificates. Client certificates aren't sent; use a name and a password.
public struct SystemEtcdTransport: EtcdTransport {
    /// Creates a transport.
    public init() {}

    /// Sends a request as a `POST`, once, and returns the answer, also when that is a redirect.
    ///
    /// - Throws: ``EtcdError`` with the code `unreachable`, `connectionLost`, `timedOut`, `unreadableAnswer` (too long) or
    ///   `invalidConfiguration` (TLS on Linux), or `CancellationError` promptly when its task is cancelled.
    @concurrent public func send(_ request: EtcdRequest) async throws -> EtcdResponse {
        try Task.checkCancellation()
        do {
            let answer = try await Self.answer(to: request)
            return EtcdResponse(status: answer.status, body: answer.body)
        } catch let failure as ExchangeFailure {
            throw EtcdError(failure, timeLimit: request.timeLimit)
        }
    }

    private static func answer(to request: EtcdRequest) async throws -> Answer {
        let limits = TimeLimits(whole: request.timeLimit), bodyLimit = EtcdResponse.maximumBodySize
        #if canImport(FoundationNetworking)
        guard request.url.scheme?.lowercased() == "http" else {
            throw EtcdError(
                .invalidConfiguration,
                "URLSession on Linux does not survive etcd's errors, so TLS needs a transport over another HTTP client")
        }
        return try await PlainExchange.answer(to: URLRequest(request), bodyLimit: bodyLimit, limits: limits)
        #else
        let exchange = Exchange(bodyLimit: bodyLimit, limits: limits)
        NetworkSession(configuration: .forgetful(request.timeLimit), challenges: .returnToCaller)
            .send(URLRequest(request), as: exchange)
        return try await exchange.answer()
        #endif
    }
}

extension URLRequest {
    fileprivate init(_ request: EtcdRequest) {
        self.init(url: request.url)
        httpMethod = "POST"
        httpBody = request.body
        allHTTPHeaderFields = request.headers
        httpShouldHandleCookies = false
    }
}

extension EtcdError {
    /// The session's errors that come before a connection is made, let alone a byte sent.
    private static let beforeSending: Set<URLError.Code> = [.cannotConnectToHost, .cannotFindHost, .dnsLookupFailed]

    /// The network's error: its own text names hosts and causes, no secret, since the URL carries none.
    fileprivate init(_ failure: ExchangeFailure, timeLimit: Duration) {
        switch failure {
        case .timedOut(let underlying): self.init(.timedOut, "\(timeLimit)", underlying: underlying)
        case .tooLong: self.init(.unreadableAnswer, "it is longer than \(EtcdResponse.maximumBodySize) bytes")
        case .connection(let detail, let underlying):
            let isSent = !Self.beforeSending.contains((underlying as? URLError)?.code ?? .unknown)
            self.init(isSent ? .connectionLost : .unreachable, detail, underlying: underlying)
        }
    }
}
#else
/// Stands in for the system's transport in a program that is built without the trait `URLSession`.
///
/// Give each store an ``EtcdTransport`` of your own.
public struct SystemEtcdTransport: EtcdTransport {
    /// Creates what can send nothing.
    public init() {}

    /// Sends nothing.
    ///
    /// - Throws: ``EtcdError`` with the code `invalidConfiguration`.
    @concurrent public func send(_ request: EtcdRequest) async throws -> EtcdResponse {
        throw EtcdError(
            .invalidConfiguration, "this program is built without the package's trait URLSession, so it must bring a transport")
    }
}
#endif
