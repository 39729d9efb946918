import AccessTokens

/// One answer, waited for by one.
final class Answer: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Result<AccessToken, any Error>, Never>)
        case given(Result<AccessToken, any Error>)
    }

    private let state = Lock(State.empty)

    func give(_ result: Result<AccessToken, any Error>) {
        let waiting = state.withLock { state -> CheckedContinuation<Result<AccessToken, any Error>, Never>? in
            defer { state = .given(result) }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        waiting?.resume(returning: result)
    }

    func value() async throws -> AccessToken {
        try await withCheckedContinuation { continuation in
            let given = state.withLock { state -> Result<AccessToken, any Error>? in
                if case .given(let result) = state { return result }
                state = .waiting(continuation)
                return nil
            }
            if let given { continuation.resume(returning: given) }
        }.get()
    }
}
