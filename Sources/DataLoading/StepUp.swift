public import AccessTokens
public import AccessTokensHTTP
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
/// all* of the current token's; the token is installed in the service, and the request sent once more. One step-up runs at a time,
/// and waiting requests use its token. The closure isn't called for scopes that the token is known to have, nor, in one session,
/// again for scopes that it has brought in vain; otherwise each such answer would bother the user.
///
/// Servers list scopes in words of their own, so the server's answer decides. A token that lists all scopes of the current one,
/// compared without case, is installed before the request is sent again. If it doesn't, the request is sent with it first, and it
/// is installed if the server accepts it: the user has just consented, and `Mail.ReadWrite` may stand for `Mail.Read`. A token
/// that the server refuses then isn't installed, nor is any after a sign-out; its refresh token, if it has one, is passed to the
/// service's `onDiscard`.
///
/// The closure may show a browser and take minutes: it has no limit, but other requests wait for it no longer than for an exchange.
/// It must not present the service's own refresh token, which the service may be presenting at that moment, and which can't gain
/// scopes anyway (RFC 6749 §6).
///
/// A 401 may demand another sign-in instead: a stronger or a newer one (RFC 9470), or one with claims (Azure's continuous access
/// evaluation). Then the closure `meetingClaims` gets a token, in the same way: one that lists fewer scopes than the current one
/// is installed only if the server accepts it.
///
/// Source: RFC 6750 §3.1; RFC 9470 §3.
public final class StepUp: Sendable {
    private struct State: Sendable {
        var scopes: StepUpScopes
        /// The service that these generations belong to: a later service of the same key may use the same numbers.
        weak var service: TokenService?
        /// The scopes that a step-up has brought in vain, in a service's generation.
        var vain: [String] = []
        var vainGeneration = 0
        weak var vainService: TokenService?
        /// The challenge that the closure was called for last, and the digest of the token that it brought.
        var met: (challenge: String, token: Int)?

        func generation(of service: TokenService) -> Int? { service === self.service ? service.currentGeneration : nil }

        func isVain(_ wanted: String, in generation: Int, of service: TokenService) -> Bool {
            service === vainService && generation == vainGeneration && vain.contains { StepUpScopes.covers($0, wanted) }
        }

        mutating func noteVain(_ wanted: String, in generation: Int, of service: TokenService) {
            scopes.lose(wanted)
            guard !isVain(wanted, in: generation, of: service) else { return }
            if service !== vainService || generation != vainGeneration { vain = [] }
            (vainGeneration, vainService) = (generation, service)
            // A server may name ever more.
            vain = vain.suffix(31) + [wanted]
        }
    }

    /// What a server misses in a token.
    enum Lack: Sendable {
        case scope(String)
        case claims(AuthenticationChallenge)

        /// Its name among those that a token was got for; no two challenges have the same.
        var text: String {
            switch self {
            case .scope(let scope): scope
            case .claims(let challenge): "#\(["acr_values", "max_age", "claims"].map { challenge[$0] }.hashValue)"
            }
        }

        var code: DataLoadingError.Code { if case .scope = self { .insufficientScope } else { .unauthorized } }
    }

    /// What a step-up has brought.
    enum Gain: Sendable {
        /// A token to send the request with once more.
        case token(AccessToken)
        /// The server's answer to the request that was sent with the new token.
        case response(Response)
        /// The user was asked for this scope before.
        case nothing
    }

    private let state: Lock<State>
    private let whenUnnamed: String?
    /// Whether a 403 without a challenge counts if its body says `insufficient_scope`.
    let readsBody: Bool
    private let line = TurnLine()
    private let meet:
        (@Sendable @concurrent (_ challenge: AuthenticationChallenge, _ token: AccessToken) async throws -> AccessToken)?
    private let widen: @Sendable @concurrent (_ scope: String, _ token: AccessToken) async throws -> AccessToken

    /// Creates a step-up.
    ///
    /// - Parameters:
    ///   - scope: The scopes that the program always asks for, separated by spaces. They are needed if the tokens don't list
    ///     their scopes.
    ///   - whenUnnamed: The scopes to ask for if a server answers with `insufficient_scope` but names no scope, as MCP's Python
    ///     server does, unless the token is known to have them all; `nil`: the closure isn't called then.
    ///   - readsBody: Whether a 403 without a challenge counts, too, if its JSON body has the `error` `insufficient_scope`, and
    ///     perhaps a `scope`, as Authlib's resource servers send it.
    ///   - meet: Gets a token of the same user that meets a challenge: its parameters `acr_values` and `max_age`, each of which may be
    ///     missing, belong into the next authorization request, and so do its `claims`, decoded from base64. Its other parameter
    ///     is the token to replace. `nil`: such a 401 ends the request.
    ///   - widen: Gets a token of the same user with all of the scopes. Its other parameter is the token to replace.
    public init(
        scope: String? = nil, whenUnnamed: String? = nil, readsBody: Bool = false,
        meetingClaims meet: (
            @Sendable @concurrent (_ challenge: AuthenticationChallenge, _ token: AccessToken) async throws -> AccessToken
        )? = nil,
        widen: @escaping @Sendable @concurrent (_ scope: String, _ token: AccessToken) async throws -> AccessToken
    ) {
        state = Lock(State(scopes: StepUpScopes(base: scope)))
        self.readsBody = readsBody
        self.whenUnnamed = StepUpScopes.valid(whenUnnamed)
        self.meet = meet
        self.widen = widen
    }

    /// The scopes that the program always asks for, with those that the last step-up gained, for a loader that requests them in
    /// each load.
    public var scope: String { state.withLock { $0.scopes.text } }

    /// Returns the scopes to ask for when a server answers with `insufficient_scope`; `nil`: none.
    ///
    /// - Parameter named: The scopes in the server's answer.
    func wanted(_ named: String?) -> String? {
        guard let named, named.contains(where: { $0 != " " }) else { return whenUnnamed }
        return StepUpScopes.valid(named)
    }

    /// Returns what a challenge to a request with a token demands of another sign-in; `nil`: nothing that it could get.
    func demand(of challenge: AuthenticationChallenge?) -> Lack? {
        guard meet != nil, let challenge else { return nil }
        let isDemand = challenge["error"] == "insufficient_user_authentication" || challenge["claims"] != nil
        return isDemand ? .claims(challenge) : nil
    }

    /// Gets a token that a challenge demands, instead of one that it was the answer to.
    private func meet(
        _ challenge: AuthenticationChallenge, insteadOf narrow: AccessToken, in session: OriginTokens.Session,
        sending send: (AccessToken) async throws -> Response
    ) async throws -> Gain {
        let current = try await session.token(), service = session.service, generation = service.currentGeneration
        let text = Lack.claims(challenge).text
        let isKnown = state.withLock { state in
            // The token with which another request met the same challenge does for this one, too, unless this one carried it.
            state.isVain(text, in: generation, of: service)
                || current.value != narrow.value && state.met.map { $0 == (text, current.value.hashValue) } ?? false
        }
        guard !isKnown, let brought = try await meet?(challenge, current) else {
            return current.value != narrow.value ? .token(current) : .nothing
        }
        let token = current.scope.map { brought.with(scope: brought.scope ?? $0) } ?? brought
        do {
            return try await install(
                token, insteadOf: current, of: generation, in: session, sending: send, orSending: { $0.value != narrow.value }
            ) { state, _ in
                state.met = (text, token.value.hashValue)
            }
        } catch let error as DataLoadingError where error.response?.status == 403 {
            // It met the demand, but lacks a scope: another sign-in would bring the same.
            noteVain(text, in: service)
            throw error
        }
    }

    /// Gets a token with what a server wants, instead of one that it has answered with `insufficient_scope`.
    ///
    /// - Parameter send: Sends the request with a token that isn't installed yet, and returns the server's answer.
    func gain(
        _ lack: Lack, insteadOf narrow: AccessToken, in session: OriginTokens.Session,
        sending send: (AccessToken) async throws -> Response
    ) async throws -> Gain {
        try await line.turn {
            try await session.wait(for: $0)
        } then: {
            let wanted: String
            switch lack {
            case .claims(let challenge): return try await meet(challenge, insteadOf: narrow, in: session, sending: send)
            case .scope(let scope): wanted = scope
            }
            // Another request's step-up may already have got the scope.
            let current = try await session.token(), service = session.service, generation = service.currentGeneration
            // Asking again for a scope that the token has would bother the user at each such answer.
            if has(wanted, current, service) { return current.value != narrow.value ? .token(current) : .nothing }
            let scope = state.withLock { state in
                state.scopes.asking(for: wanted, beyond: current.scope, generation: state.generation(of: service))
            }
            let brought = try await widen(scope, current)
            // A token without a scope has the requested one (RFC 6749 §5.1). Stored in the token, the scope outlives the service.
            let token = brought.with(scope: brought.scope ?? scope)
            return try await install(
                token, insteadOf: current, of: generation, in: session, sending: send,
                orSending: { $0.value != narrow.value && has(wanted, $0, service) }
            ) { state, installed in
                state.scopes.gain(scope, by: token, generation: installed)
                state.service = service
            }
        }
    }

    /// Installs a step-up's token; one that lists fewer scopes than the current one is sent first, and the server decides.
    ///
    /// - Parameters:
    ///   - isFit: Whether to send the service's token instead, after the program has installed another.
    ///   - note: Notes what was gained, with the generation that begins with the token.
    private func install(
        _ token: AccessToken, insteadOf current: AccessToken, of generation: Int, in session: OriginTokens.Session,
        sending send: (AccessToken) async throws -> Response, orSending isFit: (AccessToken) -> Bool,
        noting note: (inout State, Int) -> Void
    ) async throws -> Gain {
        let service = session.service
        let usable = Result { () throws(DataLoadingError) in try session.sendable(token) }
        let isUsable = (try? usable.get()) != nil, keepsAll = StepUpScopes.covers(token.scope, current.scope ?? "")
        let answer = isUsable && !keepsAll ? await Result { try await send(token) } : nil
        let isEnough = isUsable && (answer?.isAccepted ?? true)
        let installed = await service.widen(to: token, seen: session.generation) { latest in
            let scopes = latest?.scope ?? ""
            // What the user has consented to replaces the token that was asked about, and no other.
            return isEnough
                && (StepUpScopes.covers(token.scope, scopes) || !keepsAll && StepUpScopes.covers(current.scope, scopes))
        }
        guard let installed else {
            // The user has signed out, the program has installed another token, or the server refused this one.
            let latest = try await session.token()
            if isFit(latest) { return .token(latest) }
            _ = try usable.get()
            guard let answer else { return .nothing }
            return .response(try answer.get())
        }
        state.withLock { state in
            note(&state, installed)
            // The session goes on.
            if service === state.vainService, state.vainGeneration == generation { state.vainGeneration = installed }
        }
        guard let answer else { return .token(token) }
        return .response(try answer.get())
    }

    /// Notes that a server still misses the scope in the token of a step-up, so that the user isn't asked for it again.
    func noteVain(_ wanted: String, in service: TokenService) {
        state.withLock { $0.noteVain(wanted, in: service.currentGeneration, of: service) }
    }

    private func has(_ wanted: String, _ token: AccessToken, _ service: TokenService) -> Bool {
        state.withLock {
            $0.isVain(wanted, in: service.currentGeneration, of: service)
                || $0.scopes.have(wanted, token, generation: $0.generation(of: service))
        }
    }
}

extension Result where Success == Response, Failure == any Error {
    /// Whether the server accepted the request's token, whatever else it answered.
    fileprivate var isAccepted: Bool {
        guard case .failure(let error) = self else { return true }
        guard let error = error as? DataLoadingError, error.code != .unauthorized else { return false }
        return error.response.map { $0.status < 500 && ![401, 403].contains($0.status) } ?? false
    }
}

extension StepUp: Redacted {
    package var text: String { "StepUp" }
}
