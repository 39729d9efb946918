#if URLSession
import Foundation
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request and its answer, sent once in a ``NetworkSession``.
///
/// The first of these ends it: the session's answer or error, a time limit, the cancellation of the caller's task, or too long a
/// body.
package final class Exchange: Sendable {
    private struct Received {
        var body = Data()
        var progress = TransferProgress()
    }

    let transfer = Transfer()
    private let result = SingleResult<TransportResponse>()
    private let bodyLimit: Int
    private let report: @Sendable (TransferProgress) -> Void
    private let received = Lock(Received())
    private let watch: TimeLimits.Watch

    /// Creates an exchange and starts its time limits.
    ///
    /// - Parameters:
    ///   - bodyLimit: The longest body that is received, in bytes.
    ///   - limits: How long it may take, the wait for a connection included.
    ///   - report: Told how much was sent and received, on the delegate's queue.
    package init(
        bodyLimit: Int, limits: TimeLimits, reporting report: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) {
        self.bodyLimit = bodyLimit
        self.report = report
        watch = limits.watch { [result] in result.complete(with: .failure(TransportError.timedOut())) }
    }

    /// Waits for the answer; call it once.
    ///
    /// - Throws: ``TransportError``, or `CancellationError` promptly when the calling task is cancelled.
    package func answer() async throws -> TransportResponse {
        defer { watch.end() }
        do {
            return try await withTaskCancellationHandler {
                try await result.value()
            } onCancel: {
                result.complete(with: .failure(CancellationError()))
            }
        } catch {
            transfer.end()
            throw error
        }
    }
}

/// The callbacks of a session's delegate.
extension Exchange {
    func receive(_ data: Data, of expected: Int64?) {
        watch.heard()
        let progress: TransferProgress? = received.withLock { received in
            guard data.count <= bodyLimit - received.body.count else { return nil }
            received.body += data
            received.progress.bytesReceived = Int64(received.body.count)
            received.progress.bytesToReceive = Self.known(expected)
            return received.progress
        }
        guard let progress else {
            result.complete(with: .failure(TransportError.tooLong))
            return transfer.endInCallback()
        }
        report(progress)
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
        guard let answer = TransportResponse(response, body: received.withLock { $0.body }) else {
            return fail(.connectionLost("the answer is not HTTP"))
        }
        result.complete(with: .success(answer))
    }

    /// Ends with the session's error, whose text names hosts and causes but no secret; drops the URL that it carries.
    func fail(with error: any Error, ofBody hasBody: Bool) {
        let detail = error.localizedDescription
        let error =
            (error as? URLError).map { URLError(code(of: $0, hasBody: hasBody), userInfo: [NSLocalizedDescriptionKey: detail]) }
            ?? error
        if (error as? URLError)?.code == .timedOut { return fail(.timedOut(underlying: error)) }
        // Foundation on Linux gives the refusal of a host's first address as the cause of whatever fails after that.
        let wasSent = received.withLock { $0.progress.bytesSent } > 0
        fail(wasSent ? .connectionLost(detail, underlying: error) : TransportError(error, saying: detail))
    }

    private func code(of error: URLError, hasBody: Bool) -> URLError.Code {
        #if canImport(FoundationNetworking)
        // Foundation on Linux has no code for a handshake that failed. libcurl requests the body only once there is a connection,
        // and Foundation reports at once how much it has passed on.
        if error.code == .unknown, hasBody, received.withLock({ $0.progress.bytesSent }) == 0 { return .cannotConnectToHost }
        #endif
        return error.code
    }

    private func fail(_ failure: TransportError) { result.complete(with: .failure(failure)) }

    /// The session reports -1, or on Linux 0, for "unknown".
    private static func known(_ count: Int64?) -> Int64? { count.flatMap { $0 > 0 ? $0 : nil } }
}

extension TransportResponse {
    /// `nil` if the answer is not HTTP.
    fileprivate init?(_ response: URLResponse?, body: Data) {
        guard let response = response as? HTTPURLResponse else { return nil }
        var headers: [String: String] = [:]
        for case let (name as String, value as String) in response.allHeaderFields { headers[name] = value }
        self.init(status: response.statusCode, headers: headers, body: body)
    }
}

/// How much of a request was sent, and of its answer received, in bytes.
package struct TransferProgress: Sendable {
    package internal(set) var bytesSent: Int64 = 0
    /// The length of the request's body; `nil` if it is unknown, or there is none.
    package internal(set) var bytesToSend: Int64?
    package internal(set) var bytesReceived: Int64 = 0
    /// The length of the answer's body as the server announced it; `nil` if it didn't, or sends none.
    package internal(set) var bytesToReceive: Int64?
}
#endif
