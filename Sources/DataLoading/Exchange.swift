import AccessTokens
import AccessTokensOAuth
import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One message and its answer: what the session says about one of its tasks.
///
/// The first end wins: the session's, a time limit, the cancellation of the caller's task, or too long a body.
final class Exchange: Sendable {
    private struct Received {
        var body = Data()
        var progress = StatefulRequest.Progress()
    }

    let transfer = Transfer()
    private let answer = SingleResult<Response>()
    private let url: URL
    private let limit: Int
    private let report: @Sendable (StatefulRequest.Progress) -> Void
    private let received = Lock(Received())
    private let watch: SessionLimits.Watch

    /// Creates an exchange, whose time begins to count.
    init(
        url: URL, limit: Int, limits: SessionLimits, report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) {
        self.url = url
        self.limit = limit
        self.report = report
        watch = limits.watch { [answer] in answer.complete(with: .failure(DataLoadingError(.timedOut))) }
    }

    /// Waits for the answer; to be called once.
    func response() async throws -> Response {
        defer { watch.end() }
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

    func receive(_ data: Data, of expected: Int64?) {
        watch.heard()
        let progress: StatefulRequest.Progress? = received.withLock { received in
            guard data.count <= limit - received.body.count else { return nil }
            received.body += data
            received.progress.bytesReceived = Int64(received.body.count)
            received.progress.bytesToReceive = Self.known(expected)
            return received.progress
        }
        if let progress { report(progress) } else { answer.complete(with: .failure(DataLoadingError(.responseTooLong))) }
    }

    func sent(_ count: Int64, of expected: Int64) {
        watch.heard()
        let progress = received.withLock { received in
            received.progress.bytesSent = max(received.progress.bytesSent, count)
            received.progress.bytesToSend = Self.known(expected)
            return received.progress
        }
        report(progress)
    }

    func finish(with response: URLResponse?) {
        guard let response = response as? HTTPURLResponse else {
            return answer.complete(with: .failure(DataLoadingError(.connectionFailed, detail: "its answer is not HTTP")))
        }
        var headers: [String: String] = [:]
        for case let (name as String, value as String) in response.allHeaderFields { headers[name] = value }
        let body = received.withLock { $0.body }
        answer.complete(with: .success(Response(url: url, status: response.statusCode, headers: headers, body: body)))
    }

    /// Ends with the session's error, whose own text names hosts and causes, no secret.
    func fail(with error: any Error) {
        let isTimeOut = (error as? URLError)?.code == .timedOut
        answer.complete(
            with:
                .failure(
                    DataLoadingError(
                        isTimeOut ? .timedOut : .connectionFailed, detail: isTimeOut ? nil : error.localizedDescription,
                        underlying: error)))
    }

    /// The session says -1, or on Linux 0, for "unknown".
    private static func known(_ count: Int64?) -> Int64? { count.flatMap { $0 > 0 ? $0 : nil } }
}
