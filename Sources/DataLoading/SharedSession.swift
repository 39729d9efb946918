import AccessTokens
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The session that all loaders of a factory share; it ends with the last of them.
final class SharedSession: Sendable {
    private let session: URLSession
    private let exchanges: Exchanges

    /// Makes a session like the given one, with a delegate of our own.
    ///
    /// The delegate has to be the session's: on Linux one that is given to a task is not called.
    init(like template: URLSession, cache: URLCache?, cookies: HTTPCookieStorage?) {
        let configuration = template.configuration.forOrigins(cache: cache, cookies: cookies)
        exchanges = Exchanges(trusting: template.delegate)
        session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    }

    deinit {
        session.finishTasksAndInvalidate()
    }

    /// Sends a message, once, and returns the answer, whatever its status, also a redirect.
    ///
    /// - Throws: ``DataLoadingError``, or `CancellationError` promptly when its task is cancelled.
    func send(
        _ message: Message, with token: AccessToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        try Task.checkCancellation()
        let task = session.dataTask(with: try message.urlRequest(with: token))
        let exchange = Exchange(url: message.url, limit: limit, report: report)
        exchanges.add(exchange, for: task)
        defer { exchanges.remove(task) }
        report(StatefulRequest.Progress())
        task.resume()
        do {
            return try await withTaskCancellationHandler {
                try await exchange.answer.value()
            } onCancel: {
                exchange.answer.give(.failure(CancellationError()))
            }
        } catch {
            abandon(task)
            throw error
        }
    }
    /// Ends a task whose answer nobody wants, and its connection.
    private func abandon(_ task: URLSessionTask) {
        // Between two callbacks of the delegate: none of them meets a task that is half cancelled.
        session.delegateQueue.addOperation {
            guard task.state != .completed else { return }
            #if canImport(FoundationNetworking)
            // On Linux a task that is cancelled while its transfer ends completes twice, which ends the process (“not in the
            // registry”). So its transfer is halted first, which takes two steps of the task's own queue; each call waits
            // for the step before it. A cache would add steps that nobody can wait for, hence there is none.
            for _ in 1...3 { task.suspend() }
            #endif
            task.cancel()
        }
    }
}
