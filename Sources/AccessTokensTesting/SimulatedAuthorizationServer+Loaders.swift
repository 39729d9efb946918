public import AccessTokens
public import AccessTokensDispatch
import TokenServiceConcurrency

extension SimulatedAuthorizationServer {
    /// A loader for this server, for async and callback services alike; repeatable unless the server rotates refresh tokens.
    ///
    /// A load by `load(then:)` is always one of client credentials, since it presents no token. Without latency the handler of a
    /// callback load is called before the call returns. Otherwise a separate task waits for the answer and ends with it; nothing cancels the task, and
    /// it doesn't keep the server alive.
    public var loader: some TokenLoader & AccessTokenLoader { Loader(server: self) }

    private struct Loader: TokenLoader, AccessTokenLoader {
        let server: SimulatedAuthorizationServer
        var isRepeatable: Bool { !server.rotatesRefreshTokens }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            switch server.exchange(previous) {
            case .answered(let answer, let latency):
                if latency > .zero { try await server.clock.sleep(for: latency) }
                return try answer.get()
            case .lost:
                return try await server.state.wait(in: \.forsaken, as: ()) { _ in .wait() }
            }
        }

        func load(then handler: @escaping Handler) { load(replacing: nil, then: handler) }

        func load(replacing previous: AccessToken?, then handler: @escaping Handler) {
            switch server.exchange(previous) {
            case .answered(let answer, let latency) where latency > .zero:
                Task.detached(executorPreference: server.executor) { [clock = server.clock] in
                    try? await clock.sleep(for: latency)
                    handler(answer)
                }
            case .answered(let answer, _):
                handler(answer)
            case .lost:
                server.state.withLock { $0.forsakenHandlers.append(handler) }
            }
        }
    }

    /// The outcome of a load that has reached the server.
    private enum Exchange: Sendable {
        case answered(Result<AccessToken, any Error>, after: Duration)
        case lost
    }

    /// Decides a load now, and returns its answer and how long that takes.
    private func exchange(_ previous: AccessToken?) -> Exchange {
        let now = uptime()
        return state.withLock { state in
            state.loadsStarted += 1
            let trouble = state.nextTrouble()
            if case .failure(let error) = trouble { return .answered(.failure(error), after: state.latency) }
            guard state.isReachable else { return .answered(.failure(Self.unreachable), after: state.latency) }
            let decision = state.ledger.exchange(previous, at: now).mapError { $0 as any Error }
            if case .lostAnswer = trouble { return .lost }
            return .answered(decision, after: state.latency)
        }
    }

    private static let unreachable = ScriptedFailure(message: "the authorization server cannot be reached")
}
