import AccessTokens
import AccessTokensDispatch
import Synchronization

/// A loader whose first load answers when all callers are on their way: the one miss that they share.
///
/// A caller reports itself and then calls, so at most as many as there are threads may come after the answer.
final class Gate: TokenLoader, AccessTokenLoader {
    private struct State {
        var loads = 0
        var isOpen = false
        var answer: (@Sendable () -> Void)?
    }

    static let token = AccessToken("gate")
    let isRepeatable = false
    private let expected: Int
    private let arrived = Atomic(0)
    private let state = Mutex(State())

    init(callers: Int) {
        expected = callers
    }

    var loads: Int { state.withLock { $0.loads } }

    func arrive() {
        if arrived.add(1, ordering: .relaxed).newValue == expected { open() }
    }

    func open() {
        let answer = state.withLock { state in
            state.isOpen = true
            return state.answer.take()
        }
        answer?()
    }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        await unsafe withUnsafeContinuation { continuation in begin { unsafe continuation.resume() } }
        return Self.token
    }

    func load(then handler: @escaping Handler) {
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
