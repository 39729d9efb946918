extension TokenService {
    /// Somebody who waits for the current load.
    enum Waiter: Sendable {
        case caller(CallerContinuation)
        case callback(@Sendable (Result<AccessToken, any Error>) -> Void)
    }
}

extension TokenService.Waiter {
    func resume(with result: Result<AccessToken, any Error>) {
        switch self {
        case .caller(let continuation): continuation.resume(with: result)
        case .callback(let answer): answer(result)
        }
    }
}

/// The continuation of a caller that waits: checked in debug builds, and so in the everyday tests, unchecked in others.
///
/// The check is an allocation for each caller and a longer frame; it was a fifth of a miss that came in to the actor, and a
/// miss costs half of that now (`Docs/Performance.md`).
///
/// Invariant: it is resumed exactly once. It stands in one place of the lobby's ``WaiterQueue``, and is resumed by whoever
/// takes it out of there, by itself (`leave`) or with all (`open`); if that place is gone when it comes (`settle`), at once.
@safe struct CallerContinuation: Sendable {
    #if DEBUG
    private let continuation: CheckedContinuation<AccessToken, any Error>
    #else
    private let continuation: UnsafeContinuation<AccessToken, any Error>
    #endif

    func resume(with result: Result<AccessToken, any Error>) {
        #if DEBUG
        continuation.resume(with: result)
        #else
        unsafe continuation.resume(with: result)
        #endif
    }

    /// Suspends the task until the continuation that `body` gets is resumed; `body` runs at once.
    @inline(__always)
    static func suspend(
        isolation: isolated (any Actor)? = #isolation, _ body: (CallerContinuation) -> Void
    ) async throws -> AccessToken {
        #if DEBUG
        try await withCheckedThrowingContinuation { body(CallerContinuation(continuation: $0)) }
        #else
        try await unsafe withUnsafeThrowingContinuation { unsafe body(CallerContinuation(continuation: $0)) }
        #endif
    }
}
