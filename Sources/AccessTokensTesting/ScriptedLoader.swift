public import AccessTokens
public import AccessTokensDispatch
import TokenServiceConcurrency

/// A loader whose other end the test holds: each load becomes a call that the test answers when and how it likes.
///
/// ```swift
/// let loader = ScriptedLoader()
/// let service = TokenService(loader: loader)
/// async let token = service.retrieveToken()
/// let call = try await loader.nextCall()
/// call.succeed(with: AccessToken("first"))
/// ```
///
/// It serves async and callback services alike. All methods may be called concurrently, from any thread; no answer is given
/// under a lock. A call that the test never answers stays open as long as the loader lives, as with a server that never
/// answers, whether or not the test keeps the call.
public final class ScriptedLoader: TokenLoader, AccessTokenLoader {
    private struct State: Sendable {
        var loadCount = 0
        /// Calls that the test has not asked for yet, oldest first.
        var calls: [Call] = []
        /// Tests that wait for a call.
        var waiters = WaitingLine<Void, Call>()
        /// Calls without an answer: this is what keeps their handlers alive.
        var unanswered: [ObjectIdentifier: Call] = [:]
    }

    private let state = Lock(State())
    private let endsWhenCancelled: Bool

    /// Whether the loader tells its service that a load may be repeated.
    public let isRepeatable: Bool

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - isRepeatable: What the loader says about its exchange; see `TokenLoader.isRepeatable`.
    ///   - endsWhenCancelled: Whether an async load whose task is cancelled throws `CancellationError` at once, as
    ///     `URLSession` does. Otherwise the test alone decides when it ends.
    public init(isRepeatable: Bool = false, endsWhenCancelled: Bool = false) {
        self.isRepeatable = isRepeatable
        self.endsWhenCancelled = endsWhenCancelled
    }

    /// The number of loads begun so far.
    public var loadCount: Int { state.withLock { $0.loadCount } }

    /// The number of loads begun and neither answered nor let go.
    public var unansweredCount: Int { state.withLock { $0.unanswered.count } }

    /// Returns the next load's call, in the order in which the loads began; waits until there is one.
    ///
    /// Of several tasks that wait the first gets the next call. A call is returned once.
    ///
    /// - Throws: `CancellationError`, at once, when the waiting task is or was cancelled; no call is lost by that.
    public func nextCall() async throws -> Call {
        try await state.wait(in: \.waiters, as: ()) { $0.calls.isEmpty ? .wait() : .pass($0.calls.removeFirst()) }
    }

    /// Begins an async load, which ends with the test's first answer.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let call = Call(replacing: previous, of: self), answer = SingleResult<AccessToken>()
        return try await withTaskCancellationHandler {
            try await call.watchingPriority {
                begin(call, answering: .once(answer))
                // Cancelled before there was anybody to answer: `onCancel` had nothing to end.
                if endsWhenCancelled, Task.isCancelled { call.fail(with: CancellationError()) }
                return try await answer.value()
            }
        } onCancel: {
            call.cancel()
            if endsWhenCancelled { call.fail(with: CancellationError()) }
        }
    }

    /// Begins a callback load, whose handler gets every answer the test gives.
    public func load(then handler: @escaping Handler) {
        begin(Call(replacing: nil, of: self), answering: .always(handler))
    }

    private func begin(_ call: Call, answering reply: Call.Reply) {
        // Counted first: a cancellation may answer the call as soon as it is open.
        state.withLock { state in
            state.loadCount += 1
            state.unanswered[ObjectIdentifier(call)] = call
        }
        call.open(reply)
        let waiter = state.withLock { state in
            let waiter = state.waiters.takeFirst()
            if waiter == nil { state.calls.append(call) }
            return waiter
        }
        waiter?.answer.complete(with: .success(call))
    }

    /// Forgets a call that has its answer.
    func close(_ call: Call) {
        // The handler may die with the call: after the lock, since its destruction runs foreign code.
        _ = state.withLock { $0.unanswered.removeValue(forKey: ObjectIdentifier(call)) }
    }
}
