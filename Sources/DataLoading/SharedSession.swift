import AccessTokens
import AccessTokensOAuth
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session that all loaders of a factory share; it ends with the last of them.
final class SharedSession: Sendable {
    private let configuration: URLSessionConfiguration
    private let session: NetworkSession
    private let exchanges: Exchanges
    private let limits: SessionLimits
    private let line: ConnectionLine

    /// Makes a session like the given one, with a delegate of our own.
    ///
    /// The delegate has to be the session's: on Linux one that is given to a task is not called.
    init(like template: URLSession, cache: URLCache?, cookies: HTTPCookieStorage?) {
        let configuration = template.configuration.forOrigins(cache: cache, cookies: cookies)
        limits = SessionLimits(takingOver: configuration)
        self.configuration = configuration
        exchanges = Exchanges(trusting: template.delegate)
        session = NetworkSession(configuration: configuration, delegate: exchanges)
        line = ConnectionLine(limit: configuration.httpMaximumConnectionsPerHost)
    }

    /// Sends a message, once, and returns the answer, whatever its status, also a redirect.
    ///
    /// - Throws: ``DataLoadingError``, or `CancellationError` promptly when its task is cancelled.
    func send(
        _ message: Message, with token: AccessToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        try Task.checkCancellation()
        let request = try message.urlRequest(with: token)
        let exchange = Exchange(url: message.url, limit: limit, limits: limits, report: report)
        report(StatefulRequest.Progress())
        guard message.needsOwnConnection else {
            exchanges.send(request, for: exchange, in: session)
            return try await exchange.response()
        }
        let number = line.enter(for: message.origin) { [configuration] place in
            let exchanges = Exchanges(trusting: nil, at: place)
            exchanges.send(request, for: exchange, in: NetworkSession(configuration: configuration, delegate: exchanges))
        }
        defer { line.leave(number, for: message.origin) }
        return try await exchange.response()
    }
}
