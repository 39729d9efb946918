import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import Testing
import TokenServiceConcurrency

/// The usual transport, which holds its first request, or the answer to it, until it is told to continue.
///
/// While it is held, it ignores cancellation, like an answer that is already on its way.
struct GatedTransport: TokenTransport {
    enum Part { case request, answer }

    let kept: Part
    /// Yields an element when the request or answer is held, and ends when it may continue.
    let arrivals: AsyncStream<Void>
    /// The answer, which the test may know but the service must not.
    let answer = SingleResult<TransportResponse>()
    private let arrival: AsyncStream<Void>.Continuation
    private let gate = SingleResult<Void>()

    init(keeping kept: Part) {
        self.kept = kept
        (arrivals, arrival) = AsyncStream.makeStream()
    }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        if kept == .request { await wait() }
        let response = try await URLSessionTransport().send(request)
        answer.complete(with: .success(response))
        if kept == .answer { await wait() }
        return response
    }

    func open() {
        gate.complete(with: .success(()))
    }

    private func wait() async {
        arrival.yield()
        _ = try? await gate.value()
        arrival.finish()
    }
}
