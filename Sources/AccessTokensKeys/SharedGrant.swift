import AccessTokens
import TokenServiceConcurrency

/// One rotating refresh token that several keys use: their loads take turns, and each gets what the last one brought.
///
/// The refresh token is kept by a service of its own, the vault, which no caller sees. So a rotated one is saved before any caller
/// gets its access token, a sign-out is a fence, and a store that hangs costs 5 s: all as with a key that shares nothing. What is
/// to be done with the vault is decided under a lock, in the order of the calls, and done by one task in that order.
final class SharedGrant: GrantLender {
    private struct State {
        /// How many sign-ins and sign-outs there were, and what the last one was.
        var generation = 0
        var lastFence: DiscardedGrant.Reason?
        /// What the vault has to do, and who waits for it.
        var steps: [(step: Step, end: SingleResult<SessionChange>)] = []
        var isAtWork = false
    }

    private enum Step {
        /// Keep a refresh token, which a load has brought or, with a reason, a sign-in.
        case put(AccessToken, DiscardedGrant.Reason?)
        case reset
        /// Nothing: all before it is done.
        case settle

        /// Why it ends the session before it; `nil`: it doesn't.
        var fence: DiscardedGrant.Reason? {
            switch self {
            case .put(_, let reason): reason
            case .reset: .signedOut
            case .settle: nil
            }
        }
    }

    private let state = Lock(State())
    private let line = TurnLine()
    private let vault: TokenService
    private let executor: (any TaskExecutor)?
    private let loadExecutor: (any TaskExecutor)?
    private let discard: (@Sendable (DiscardedGrant) async -> Void)?

    init(
        store: (any TokenStore)?, environment: TokenService.Environment,
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)?, tether: (any ServiceTether)?
    ) {
        executor = environment.ownExecutor
        loadExecutor = environment.loadExecutor
        discard = onDiscard
        vault = TokenService(
            policy: RefreshPolicy(), environment: environment, clock: ServiceClock.opened(environment.clock),
            loader: VaultLoader(),
            ties: ServiceTies(store: store, onDiscard: nil, tether: tether))
    }

    // MARK: Sign-in and sign-out

    func signIn(_ token: AccessToken) -> SingleResult<SessionChange>? {
        guard token.refreshToken != nil else { return nil }
        return perform(.put(.kept(token), .replaced))
    }

    func signOut() -> SingleResult<SessionChange>? {
        perform(.reset)
    }

    /// Waits until all has been saved; no key loads any more.
    func drain(within limit: Duration) async -> Bool {
        let deadline = vault.now + limit, settled = SingleResult<Void>()
        // What users have done, and the grants that loads have brought, come to the vault first.
        let steps = perform(.settle)
        Task.detached(on: executor) {
            _ = try? await steps?.value()
            settled.complete(with: .success(()))
        }
        guard await vault.wait(for: settled, until: deadline) else { return false }
        return await vault.drain(within: deadline - vault.now)
    }

    func resume() async { await vault.resume() }

    var wasFenced: Bool { state.withLock { $0.generation > 0 } }

    /// Decides on a step, which is done after all that were decided on before.
    ///
    /// - Parameter generation: The sign-in that a load's grant belongs to; if another came since, this does nothing.
    private func perform(_ step: Step, in generation: Int? = nil) -> SingleResult<SessionChange>? {
        let end = SingleResult<SessionChange>()
        let (isWanted, isFirst) = state.withLock { state in
            guard generation ?? state.generation == state.generation else { return (false, false) }
            if let reason = step.fence {
                state.generation += 1
                state.lastFence = reason
            }
            state.steps.append((step, end))
            defer { state.isAtWork = true }
            return (true, !state.isAtWork)
        }
        if isFirst { Task.detached(on: executor) { await self.work() } }
        return isWanted ? end : nil
    }

    /// Does what is to be done, until there is nothing left.
    private func work() async {
        while let (step, end) = nextStep() {
            var change = SessionChange(discarded: [], storeFailure: nil)
            switch step {
            case .put(let token, _): change = await vault.replace(with: token)
            case .reset: change = await vault.reset()
            case .settle: break
            }
            let discarded = step.fence == nil ? [] : change.discarded.map(\.withoutPlaceholder)
            for token in discarded { giveUp(token, step.fence) }
            end.complete(with: .success(SessionChange(discarded: discarded, storeFailure: change.storeFailure)))
        }
    }

    private func nextStep() -> (step: Step, end: SingleResult<SessionChange>)? {
        state.withLock { state in
            guard state.steps.isEmpty else { return state.steps.removeFirst() }
            state.isAtWork = false
            return nil
        }
    }

    private func giveUp(_ token: AccessToken, _ reason: DiscardedGrant.Reason?) {
        guard let discard, let reason else { return }
        Task.detached(on: loadExecutor) { await discard(DiscardedGrant(token: token, reason: reason)) }
    }

    // MARK: Loads

    /// Performs one key's load in its turn, with the grant that the last one left.
    ///
    /// - Parameter previous: The key's own last token.
    /// - Returns: The key's new token, without the refresh token, which stays here.
    func load(replacing previous: AccessToken?, from loader: any TokenLoader) async throws -> AccessToken {
        try await line.turn {
            while true {
                try Task.checkCancellation()
                let (grant, generation) = try await self.grant()
                let given = grant == nil && previous == nil ? nil : (previous ?? .none).with(refreshToken: grant)
                let outcome = await Result { try await loader.loadToken(replacing: given) }
                let salvaged = (outcome.failure as? SalvagedGrant)?.grant
                guard await keep(salvaged ?? (try? outcome.get()), given: grant, in: generation) else { continue }
                if let salvage = outcome.failure as? SalvagedGrant { throw salvage.reason }
                return try outcome.get().with(refreshToken: nil)
            }
        }
    }

    /// The refresh token, and the sign-in that it belongs to.
    private func grant() async throws -> (refreshToken: String?, generation: Int) {
        while true {
            let generation = state.withLock { $0.generation }
            // All that users have done is done first.
            _ = try? await perform(.settle)?.value()
            let refreshToken = try await storedGrant()
            // A sign-in or a sign-out is counted before the vault learns of it: if there was none, the vault had this one's grant.
            if state.withLock({ $0.generation }) == generation { return (refreshToken, generation) }
        }
    }

    private func storedGrant() async throws -> String? {
        do {
            return try await vault.retrieveToken().refreshToken
        } catch let error as TokenServiceError where error.underlying is NoGrant {
            return nil
        }
    }

    /// Saves the refresh token that a load has brought; `false`: the user has signed in or out meanwhile, so the load begins anew.
    private func keep(_ token: AccessToken?, given: String?, in generation: Int) async -> Bool {
        guard let token, let new = token.refreshToken, new != given else {
            return state.withLock { $0.generation } == generation
        }
        guard let end = perform(.put(.kept(token), nil), in: generation) else {
            giveUp(AccessToken("", refreshToken: new), state.withLock { $0.lastFence })
            return false
        }
        _ = try? await end.value()
        return true
    }
}

/// The loader of a key that shares its grant.
struct SharingLoader: TokenLoader {
    let loader: any TokenLoader
    let grant: SharedGrant

    var isRepeatable: Bool { loader.isRepeatable }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await grant.load(replacing: previous, from: loader)
    }
}

/// A vault gets nothing from a server: what it doesn't have it was never given.
private struct VaultLoader: TokenLoader {
    let isRepeatable = true

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        // A store may have a whole token, from a time when its key shared nothing.
        guard let previous, previous.refreshToken != nil else { throw NoGrant() }
        return .kept(previous)
    }
}

/// No user is signed in.
private struct NoGrant: Error {}

extension AccessToken {
    private static let placeholder = "-"

    fileprivate static let none = AccessToken("", lifetime: .zero)

    /// What a vault keeps: the refresh token alone, with no end.
    fileprivate static func kept(_ token: AccessToken) -> AccessToken {
        AccessToken(placeholder, refreshToken: token.refreshToken)
    }

    fileprivate var withoutPlaceholder: AccessToken {
        value == Self.placeholder ? AccessToken("", refreshToken: refreshToken) : self
    }
}

extension Result {
    /// The error, if it is one.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
