public import AccessTokens
import TokenServiceConcurrency

/// Gets a token with more scopes when a resource asks for them.
///
/// ```swift
/// let stepUp = StepUp(scope: "read") { scope, _ in try await signIn(scope: scope) }
/// let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL], stepUp: stepUp))
/// ```
///
/// With tokens of several keys, each key has its own:
/// `OriginTokens(keys: keys, stepUp: { key in StepUp { … } }) { services[$0] }`.
///
/// When a server answers 403 with `insufficient_scope` and names a scope, the closure is called for a token with that scope *and
/// all* of the current token's; the token is installed in the service, and the request sent once more. It isn't called for scopes
/// that the token is known to have; otherwise each such answer would bother the user. One step-up runs at a time. Waiting
/// requests use its token if that is enough, so two requests never remove each other's scopes. A token that lacks a scope of the
/// current one is never installed, nor is any token after a sign-out; its refresh token, if it has one, is passed to the service's
/// `onDiscard`.
///
/// The closure may show a browser and take minutes. It must not present the service's own refresh token, which the service may be
/// presenting at that moment, and which can't gain scopes anyway (RFC 6749 §6).
///
/// Source: RFC 6750 §3.1.
public final class StepUp: Sendable {
    private struct State: Sendable {
        var scopes: StepUpScopes
        /// The service that these generations belong to: a later service of the same key may use the same numbers.
        weak var service: TokenService?

        func generation(of service: TokenService) -> Int? { service === self.service ? service.currentGeneration : nil }
    }

    private let state: Lock<State>
    private let whenUnnamed: String?
    private let line = TurnLine()
    private let widen: @Sendable @concurrent (_ scope: String, _ token: AccessToken) async throws -> AccessToken

    /// Creates a step-up.
    ///
    /// - Parameters:
    ///   - scope: The scopes that the program always asks for, separated by spaces. They are needed if the tokens don't list
    ///     their scopes.
    ///   - whenUnnamed: The scopes to ask for if a server answers with `insufficient_scope` but names no scope, as MCP's Python
    ///     server does, unless the token is known to have them all; `nil`: the closure isn't called then.
    ///   - widen: Gets a token of the same user with all of the scopes. Its other parameter is the token to replace.
    public init(
        scope: String? = nil, whenUnnamed: String? = nil,
        widen: @escaping @Sendable @concurrent (_ scope: String, _ token: AccessToken) async throws -> AccessToken
    ) {
        state = Lock(State(scopes: StepUpScopes(base: scope)))
        self.whenUnnamed = StepUpScopes.valid(whenUnnamed)
        self.widen = widen
    }

    /// The scopes that the program always asks for, with those that the last step-up gained, for a loader that requests them in
    /// each load.
    public var scope: String { state.withLock { $0.scopes.text } }

    /// Returns the scopes to ask for when a server answers with `insufficient_scope`; `nil`: none.
    ///
    /// - Parameter named: The scopes in the server's answer.
    func wanted(_ named: String?) -> String? { named.map { StepUpScopes.valid($0) } ?? whenUnnamed }

    /// Returns a token with the scope that a server wants, instead of one that it has answered with `insufficient_scope`.
    ///
    /// - Returns: `nil` if there is none: the token is known to have that scope, or the step-up's token lacks a requested one.
    func token(insteadOf narrow: AccessToken, for wanted: String, in session: OriginTokens.Session) async throws -> AccessToken? {
        try await line.turn {
            // Another request's step-up may already have got the scope.
            let current = try await session.token(), service = session.service
            // Asking again for a scope that the token has would bother the user at each such answer.
            if has(wanted, current, service) { return current.value != narrow.value ? current : nil }
            let scope = state.withLock { state in
                state.scopes.asking(for: wanted, beyond: current.scope, generation: state.generation(of: service))
            }
            let brought = try await widen(scope, current)
            // A token without a scope has the requested one (RFC 6749 §5.1). Stored in the token, the scope outlives the service.
            let token = brought.with(scope: brought.scope ?? scope)
            let usable = Result { () throws(DataLoadingError) in try session.sendable(token) }
            let isEnough = StepUpScopes.covers(token.scope, scope) && (try? usable.get()) != nil
            let installed = await service.widen(to: token, seen: session.generation) { current in
                isEnough && StepUpScopes.covers(token.scope, current?.scope ?? "")
            }
            guard let generation = installed else {
                // The user has signed out, or the program has installed another token.
                let current = try await session.token()
                if current.value != narrow.value, has(wanted, current, service) { return current }
                _ = try usable.get()
                return nil
            }
            state.withLock { state in
                state.scopes.gain(scope, generation: generation)
                state.service = service
            }
            return token
        }
    }

    private func has(_ wanted: String, _ token: AccessToken, _ service: TokenService) -> Bool {
        state.withLock { $0.scopes.have(wanted, scope: token.scope, generation: $0.generation(of: service)) }
    }
}

extension StepUp: Redacted {
    package var text: String { "StepUp" }
}
