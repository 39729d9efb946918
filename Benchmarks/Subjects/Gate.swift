package import AccessTokens
package import AccessTokensDispatch
import Synchronization

/// A loader whose first load answers when all callers are on their way: the one miss that they share.
///
/// A caller reports itself and then calls, so at most as many as there are threads may come after the answer.
package final class Gate: TokenLoader, AccessTokenLoader {
    private struct State {
        var loads = 0
        var isOpen = false
        var answer: (@Sendable () -> Void)?
    }

    package static let token = AccessToken("gate")
    package let isRepeatable = false
    private let expected: Int
    private let arrived = Atomic(0)
    private let state = Mutex(State())

    package init(callers: Int) {
        expected = callers
    }

    package var loads: Int { state.withLock { $0.loads } }

    package func arrive() {
        if arrived.add(1, ordering: .relaxed).newValue == expected { open() }
    }

    package func open() {
        let answer = state.withLock { state in
            state.isOpen = true
            return state.answer.take()
        }
        answer?()
    }

    @concurrent package func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        await unsafe withUnsafeContinuation { continuation in begin { unsafe continuation.resume() } }
        return Self.token
    }

    package func load(then handler: @escaping Handler) {
        begin { handler(.success(Self.token)) }
    }

    private func begin(_ answer: @escaping @Sendable () -> Void) {
        let isOpen = state.withLock { state in
            state.loads += 1
            if !state.isOpen { state.answer = answer }
            return state.isOpen
        }
        if isOpen { answer() }
    }
}
