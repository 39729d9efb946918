import AccessTokens
import Foundation
import AccessTokensHTTP

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session that all loaders of a factory share; it ends with the last of them.
final class LoadingSession: MessageSender {
    private let configuration: URLSessionConfiguration
    private let session: NetworkSession
    /// The configuration's headers that only a request's own origin gets.
    private let headers: [String: String]
    private let limits: TimeLimits
    private let line: ConnectionLine
    let timeLimit: Duration?

    /// Creates a session like the given one, with a delegate of our own.
    ///
    /// The delegate must be the session's own: on Linux a task's own delegate is not called.
    init(like template: URLSession, cache: URLCache?, cookies: HTTPCookieStorage?) {
        let configuration = template.configuration.forOrigins(cache: cache, cookies: cookies)
        headers = configuration.takeHeaders()
        timeLimit = TimeLimits.whole(of: configuration)
        limits = TimeLimits(takingOver: configuration)
        self.configuration = configuration
        session = NetworkSession(configuration: configuration, challenges: .ask(template.delegate))
        line = ConnectionLine(limit: configuration.httpMaximumConnectionsPerHost)
    }

    /// Sends a message once, and returns the response whatever its status, including a redirect.
    ///
    /// - Throws: ``DataLoadingError``, or `CancellationError` promptly when its task is cancelled.
    func send(
        _ message: Message, with carried: CarriedToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        try Task.checkCancellation()
        let request = try message.urlRequest(with: carried, adding: headers)
        let exchange = Exchange(bodyLimit: limit, limits: limits) { report(StatefulRequest.Progress($0)) }
        report(StatefulRequest.Progress())

        let answer: TransportResponse
        do {
            if message.needsOwnConnection {
                let number = line.enter(for: message.origin) { [configuration] place in
                    NetworkSession(configuration: configuration, challenges: .ask(nil), keeping: place)
                        .send(request, as: exchange)
                }
                defer { line.leave(number, for: message.origin) }
                answer = try await exchange.answer()
            } else {
                session.send(request, as: exchange)
                answer = try await exchange.answer()
            }
        } catch let failure as TransportError {
            throw DataLoadingError(failure, isElsewhere: message.hasLeftOrigin)
        }
        return Response(url: message.url, status: answer.status, headers: answer.headers, body: answer.body)
    }
}

extension StatefulRequest.Progress {
    fileprivate init(_ progress: TransferProgress) {
        self.init(
            bytesSent: progress.bytesSent, bytesToSend: progress.bytesToSend, bytesReceived: progress.bytesReceived,
            bytesToReceive: progress.bytesToReceive)
    }
}

extension DataLoadingError {
    /// Wraps a session's error, whose own text names hosts and causes but no secret.
    ///
    /// - Parameter isElsewhere: Whether a redirect chose the host; if so, its name may be a secret, and only the code is kept.
    fileprivate init(_ failure: TransportError, isElsewhere: Bool) {
        switch failure {
        case .notSent(_, let underlying) where isElsewhere, .connectionLost(_, let underlying) where isElsewhere:
            self.init(
                .connectionFailed, detail: "a redirect led to another host",
                underlying: (underlying as? URLError).map { URLError($0.code) })
        case .timedOut(let underlying): self.init(.timedOut, underlying: underlying)
        case .tooLong: self.init(.responseTooLong)
        case .notSent(let detail, let underlying), .connectionLost(let detail, let underlying):
            self.init(.connectionFailed, detail: detail, underlying: underlying)
        // Unreachable: sessions never report this.
        case .invalidConfiguration(let detail): self.init(.connectionFailed, detail: detail)
        }
    }
}
