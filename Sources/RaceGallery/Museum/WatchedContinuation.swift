import AccessTokens
import TokenServiceConcurrency

/// A continuation that tells of each resume; a checked one would end the process at the second.
final class WatchedContinuation: Sendable {
    typealias Observer = @Sendable (_ number: Int, _ result: Result<AccessToken, any Error>) -> Void

    private struct State {
        var continuation: CheckedContinuation<AccessToken, any Error>?
        var resumes = 0
    }

    private let state: Lock<State>
    private let onResume: Observer

    private init(_ continuation: CheckedContinuation<AccessToken, any Error>, _ onResume: @escaping Observer) {
        state = Lock(State(continuation: continuation))
        self.onResume = onResume
    }

    static func wait(onResume: @escaping Observer, _ body: (WatchedContinuation) -> Void) async throws -> AccessToken {
        try await withCheckedThrowingContinuation { body(WatchedContinuation($0, onResume)) }
    }

    func resume(with result: Result<AccessToken, any Error>) {
        let (number, continuation) = state.withLock { state in
            state.resumes += 1
            defer { state.continuation = nil }
            return (state.resumes, state.continuation)
        }
        onResume(number, result)
        continuation?.resume(with: result)
    }
}
