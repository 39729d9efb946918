public import AccessTokens
public import AccessTokensDispatch
import TokenServiceConcurrency

/// A loader that the test controls: each load becomes a call that the test answers when and how it likes.
///
/// ```swift
/// let loader = ScriptedLoader()
/// let service = TokenService(loader: loader)
/// async let token = service.retrieveToken()
/// let call = try await loader.nextCall()
/// call.succeed(with: AccessToken("first"))
/// ```
///
/// It serves async and callback services alike. All methods may be called concurrently, from any thread; no answer is given under
/// a lock. A call that the test never answers stays open as long as the loader lives, as with a server that never answers, even
/// if the test doesn't keep the call.
public final class ScriptedLoader: TokenLoader, AccessTokenLoader {
    private struct State: Sendable {
        var loadCount = 0
        /// Calls that the test has not asked for yet, oldest first.
        var calls: [Call] = []
        /// Tasks of the test that wait for a call.
        var waiters = WaitingLine<Void, Call>()
        /// Unanswered calls; this keeps their handlers alive.
        var unanswered: [ObjectIdentifier: Call] = [:]
    }

    private let state = Lock(State())
    private let endsWhenCancelled: Bool

    /// Whether the service may repeat a load that still runs.
    public let isRepeatable: Bool

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - isRepeatable: Whether a load may be repeated while an earlier one runs; see `TokenLoader.isRepeatable`.
    ///   - endsWhenCancelled: Whether an async load whose task is cancelled throws `CancellationError` at once, as `URLSession`
    ///     does. Otherwise only the test decides when the load ends.
    public init(isRepeatable: Bool = false, endsWhenCancelled: Bool = false) {
        self.isRepeatable = isRepeatable
        self.endsWhenCancelled = endsWhenCancelled
    }

    /// The number of loads that have begun.
    public var loadCount: Int { state.withLock { $0.loadCount } }

    /// The number of loads that have begun and have neither been answered nor released.
    package var unansweredCount: Int { state.withLock { $0.unanswered.count } }

    /// Returns the next load's call, in the order in which the loads began; waits until there is one.
    ///
    /// If several tasks wait, the first one gets the next call. Each call is returned once.
    ///
    /// - Throws: `CancellationError`, at once, when the waiting task is or was cancelled; no call is lost.
    public func nextCall() async throws -> Call {
        try await state.wait(in: \.waiters, as: ()) { $0.calls.isEmpty ? .wait() : .pass($0.calls.removeFirst()) }
    }

    /// Begins an async load, which ends with the test's first answer.
    @concurrent public func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let call = Call(replacing: previous, of: self), answer = SingleResult<AccessToken>()
        return try await withTaskCancellationHandler {
            try await call.watchingPriority {
                begin(call, answering: .once(answer))
                // The task was cancelled before it could be answered, so `onCancel` found no call to end.
                if endsWhenCancelled, Task.isCancelled { call.fail(with: CancellationError()) }
                return try await answer.value()
            }
        } onCancel: {
            call.cancel()
            if endsWhenCancelled { call.fail(with: CancellationError()) }
        }
    }

    /// Begins a callback load, whose handler gets every answer the test gives.
    public func load(replacing previous: AccessToken?, then handler: @escaping Handler) {
        begin(Call(replacing: previous, of: self), answering: .always(handler))
    }

    /// Begins a callback load of code that passes no token to replace.
    public func load(then handler: @escaping Handler) { load(replacing: nil, then: handler) }

    private func begin(_ call: Call, answering reply: Call.Reply) {
        // Count first: a cancellation may answer the call as soon as it is open.
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
        // Release the call after unlocking: its handler may go with it, which runs foreign code.
        _ = state.withLock { $0.unanswered.removeValue(forKey: ObjectIdentifier(call)) }
    }
}
