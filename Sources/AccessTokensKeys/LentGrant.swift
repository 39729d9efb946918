import AccessTokens
import TokenServiceConcurrency

/// One rotating refresh token that several keys use: their loads take turns, each with the token that the last one received.
///
/// The refresh token is kept by a separate service, the vault, which no caller sees. So a rotated token is saved before any
/// caller gets its access token, a sign-out is a fence, and a store that hangs costs 5 s, as with a key that has its own grant.
/// The vault's steps are decided under a lock, in the order of the calls, and one task performs them in that order. A sign-out
/// ends the sessions of all keys under that lock, and returns when the store has removed the refresh token as well.
final class LentGrant: LoadTurn {
    typealias Fence = TokenService.Fence

    private struct State {
        var edition = Edition()
        /// The last fence, a sign-in or a sign-out; `nil`: there was none.
        var lastFence: DiscardedGrant.Reason?
        var work = GrantWork()
        var turns = GrantTurns()
        var members = GrantMembers()
        /// What the vault's store has yet to save.
        var unsaved: FailedWrite?

        /// Notes a step; if a sign-in or a sign-out has ended the running turn, returns the result of the next one.
        mutating func note(_ step: VaultStep) -> SingleResult<Void>? {
            guard let reason = step.fence else {
                if case .keep = step { edition.loads += 1 }
                return nil
            }
            lastFence = reason
            edition.fences += 1
            return turns.end()
        }
    }

    /// Tells whether the grant that a load began with is still the current one.
    private struct Edition: Equatable {
        /// The numbers of sign-ins and sign-outs, and of grants received by loads.
        var fences = 0, loads = 0
    }

    private let state = Lock(State())
    private let clock: ServiceClock
    private let vault: TokenService
    /// Where the grant's own steps run, as those of a service do; nothing of the program's runs there.
    private let executor: (any TaskExecutor)?
    private let loadExecutor: (any TaskExecutor)?
    private let outlet: GrantOutlet?

    init(
        store: (any TokenStore)?, environment: TokenService.Environment, clock: ServiceClock,
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)?, tether: ServiceTether
    ) {
        executor = environment.limitExecutor
        loadExecutor = environment.loadExecutor
        outlet = onDiscard.map { GrantOutlet($0) }
        self.clock = clock
        let owner = VaultOwner()
        vault = TokenService(
            policy: RefreshPolicy(), environment: environment, clock: clock, seed: environment.seed, loader: VaultLoader(),
            ties: ServiceTies(
                store.map { VaultStore(store: $0) }, onDiscard: outlet?.discard, tether: owner.tether(tether)))
        owner.attach(to: self)
    }

    // MARK: Keys

    func join() -> Int { state.withLock { $0.members.join() } }
    func attach(_ member: Int, to service: TokenService) {
        let isBehind = state.withLock { state in
            state.members.attach(member, to: service)
            return state.unsaved != nil
        }
        if isBehind { tell(service) }
    }
    func leave(_ member: Int) { state.withLock { $0.members.leave(member) } }

    /// Takes what the vault's store has yet to save: the keys' hits repeat it, and no refresh ahead spends the grant meanwhile.
    func note(_ unsaved: FailedWrite?) {
        let services = state.withLock { state in
            state.unsaved = unsaved
            return state.members.services(but: nil)
        }
        for service in services { tell(service) }
    }

    private func tell(_ service: TokenService) {
        Task.detached(on: executor) { await service.lenderIsBehind { self.state.withLock { $0.unsaved } } }
    }

    // MARK: Sign-in and sign-out

    /// See `GrantLender.fence(_:unlessFenced:_:)`.
    func fence(_ token: AccessToken?, by member: Int, unlessFenced: Bool, _ fence: () -> Fence?) -> Fence? {
        // An access token alone leaves the refresh token as it is.
        if let token, token.refreshToken == nil { return fence() }
        var made: Fence?
        let end = decide(on: token.map { .signIn(.kept($0)) } ?? .reset, by: member) { state in
            if unlessFenced, state.lastFence != nil { return false }
            made = fence()
            return made != nil
        }
        made?.lent = end
        return made
    }

    /// Whether there is a refresh token, after all earlier sign-ins and sign-outs.
    func signInState() async -> SignInState {
        await wait(for: perform(.settle))
        let state = await vault.signInState()
        guard state.code == .validToken else { return state }
        // What the vault keeps never expires; a token of a time before the grant was shared may have no refresh token.
        return SignInState(vault.cachedToken?.refreshToken == nil ? .signedOut : .signedIn)
    }

    /// Ends the pauses after the store's failures, because the user asked to try again.
    func retry() { _ = perform(.retry) }

    func saveAgain() { _ = perform(.settle) }

    /// Waits until everything has been saved.
    ///
    /// The vault starts no loads itself, so draining or resuming the keys doesn't affect it.
    func drain(within limit: Duration) async -> DrainResult {
        let deadline = vault.now + limit
        if !state.withLock({ $0.work.isDone && $0.unsaved == nil }) {
            let settled = SingleResult<Void>()
            // First let all sign-ins, sign-outs and loaded grants reach the vault.
            let steps = perform(.retry)
            Task.detached(on: executor) {
                _ = try? await steps?.value()
                settled.complete(with: .success(()))
            }
            guard await vault.wait(for: settled, until: deadline) else { return DrainResult(hasEnded: false) }
        }
        let result = await vault.waitForWork(within: deadline - vault.now)
        let unsaved = result.unsaved.map { UnsavedChange(token: $0.token?.withoutPlaceholder, error: $0.error) }
        return DrainResult(hasEnded: result.hasEnded, unsaved: unsaved)
    }

    /// Decides on a step, which is performed after all earlier steps.
    ///
    /// - Parameter edition: The grant that a load's grant replaces; if it is no longer the current one, this does nothing.
    private func perform(_ step: VaultStep, over edition: Edition? = nil) -> SingleResult<SessionChange>? {
        decide(on: step) { edition ?? $0.edition == $0.edition }
    }

    /// Decides on a step if it is meant; a sign-out ends the sessions of all keys.
    ///
    /// - Parameters:
    ///   - member: The key whose user signs in or out.
    ///   - isMeant: Called under the lock.
    private func decide(
        on step: VaultStep, by member: Int? = nil, if isMeant: (borrowing State) -> Bool
    ) -> SingleResult<SessionChange>? {
        let others = step.fence == nil ? nil : SingleResult<[AccessToken]>()
        let item = GrantWork.Item(step: step, others: others, end: SingleResult()), urgency = Urgency.current
        let now = clock.now()
        let decision = state.withLock { state -> (isFirst: Bool, next: SingleResult<Void>?, others: [Other])? in
            guard isMeant(state) else { return nil }
            let next = state.note(step)
            let services = others == nil ? [] : state.members.services(but: member)
            let fences = services.map { ($0, step.signsOut ? $0.drop(at: now, as: urgency) : nil) }
            return (state.work.append(item, as: urgency), next, fences)
        }
        guard let (isFirst, next, services) = decision else { return nil }
        next?.complete(with: .success(()))
        if let others { tell(services, then: others) }
        if isFirst { beginWork(as: urgency) } else { raiseWork(to: urgency) }
        return item.end
    }

    private func beginWork(as urgency: Urgency) {
        let worker = Task.detached(on: executor, priority: urgency.priority) { await self.work() }
        let highest = state.withLock { $0.work.began(worker) }
        // A more urgent step may have been added meanwhile.
        if urgency < highest { worker.raise(to: highest, on: executor) }
    }

    func raiseWork(to urgency: Urgency) {
        state.withLock { $0.work.raise(to: urgency) }?.raise(to: urgency, on: executor)
    }

    /// Waits for the end of a step; if the waiting load becomes more urgent, so does the step.
    private func wait(for end: SingleResult<SessionChange>?) async {
        _ = try? await end?.value(known: .background) { self.raiseWork(to: $0) }
    }

    /// Performs the steps until none is left.
    private func work() async {
        while let item = state.withLock({ $0.work.next() }) {
            var change = SessionChange(discarded: [], storeFailure: nil)
            switch item.step {
            case .signIn(let token): change = await vault.replace(with: token)
            case .keep(let token, let spent):
                if token.refreshToken != spent { outlet?.expect(spent) }
                await vault.replace(with: token)
            case .reset: change = await vault.reset()
            case .retry: await vault.retryNow()
            case .settle: await vault.saveWhatIsDue()
            }
            let discarded = change.discarded.map(\.withoutPlaceholder)
            // No load of a later session begins before the services have dropped this session's tokens.
            let others = (try? await item.others?.value()) ?? []
            item.end.complete(with: .success(SessionChange(discarded: discarded + others, storeFailure: change.storeFailure)))
        }
    }

    /// Another key's service; if a sign-out has ended its session, the fence.
    private typealias Other = (service: TokenService, fence: Fence?)

    /// Notifies the other keys' services: of a sign-out, which has ended their sessions, or of a sign-in, which ends their
    /// pauses; and lost loads no longer block them.
    private func tell(_ services: [Other], then end: SingleResult<[AccessToken]>) {
        Task.detached(on: executor, priority: Task.currentPriority) {
            let dropped = await withTaskGroup(of: [AccessToken].self) { group in
                for (service, fence) in services {
                    group.addTask {
                        if let fence { return await service.finish(fence).discarded }
                        await service.lentGrantReplaced()
                        return []
                    }
                }
                return await group.reduce(into: []) { $0 += $1 }
            }
            end.complete(with: .success(dropped))
        }
    }

    // MARK: Loads

    /// Performs one key's load in its turn, with the current grant.
    ///
    /// A load that never ends keeps its turn until a sign-in or a sign-out, after which the other keys use another grant, or
    /// until its patience has passed. If it ends later, its result is kept if there is no newer grant.
    ///
    /// - Parameters:
    ///   - previous: The key's own last token.
    ///   - member: The key, whose service may have been drained while the load waited for its turn.
    ///   - patience: How long the load keeps its turn.
    /// - Returns: The key's new token without the refresh token, which stays here.
    func load(
        replacing previous: AccessToken?, by member: Int, from loader: any TokenLoader, patience: Duration
    ) async throws -> AccessToken {
        while true {
            let turn = try await takeTurn(by: member)
            defer { giveBack(turn) }
            if state.withLock({ $0.unsaved != nil }) { retry() }
            // A fence ends a load that waits.
            try LoadTime.check()
            let (grant, edition) = try await self.grant()
            // A load whose time ran out while it waited for its turn and the grant must not spend anything.
            try LoadTime.check()
            if state.withLock({ $0.members.service(of: member) })?.isDeserted ?? false { throw LoadDeserted() }
            let end = clock.now() + patience
            guard state.withLock({ $0.edition == edition && $0.turns.begin(turn, until: end) }) else { continue }
            let alarm = Task.detached(on: executor) { if await self.clock.hasPassed(end) { self.giveBack(turn) } }
            defer { alarm.cancel() }
            // What is kept of the last response comes with the grant to a key that has had no token yet.
            let given = grant == nil && previous == nil ? nil : (previous ?? .none(after: grant)).with(grantOf: grant)
            let outcome = await Result { try await loader.loadToken(replacing: given) }
            let salvaged = (outcome.failure as? SalvagedGrant)?.grant
            guard await keep(salvaged ?? (try? outcome.get()), given: grant, over: edition) else { continue }
            guard let error = outcome.failure else { return try outcome.get().with(grantOf: nil) }
            throw failure((error as? SalvagedGrant)?.reason ?? error, over: edition)
        }
    }

    /// Wraps a failure.
    ///
    /// The key's service checks for a later sign-in, because it may be told about the failure first.
    private func failure(_ error: any Error, over edition: Edition) -> LentGrantFailure {
        LentGrantFailure(error) { self.state.withLock { $0.edition.fences } != edition.fences }
    }

    /// Which load has its turn, for those that wait for theirs.
    var holder: LoadMembership? { state.withLock { $0.turns.holder } }

    /// Waits for a load's turn; a cancelled load leaves the line at once, and so does one that its turn would wait for.
    private func takeTurn(by member: Int) async throws -> Int {
        let now = clock.now(), urgency = Urgency.current, load = LoadMembership.current
        let (turn, start, next) = state.withLock { $0.turns.enter(at: now, by: member, of: load, as: urgency) }
        next?.complete(with: .success(()))
        do {
            if next !== start { try load?.beginWaiting(for: .turn(self)) }
            defer { if next !== start { load?.endWaiting(for: .turn(self)) } }
            raiseLoads(before: turn, to: urgency)
            try await withTaskCancellationHandler {
                try await start.value(known: urgency) { self.raiseLoads(before: turn, to: $0) }
            } onCancel: {
                giveBack(turn)
                start.complete(with: .failure(CancellationError()))
            }
            try Task.checkCancellation()
        } catch {
            giveBack(turn)
            throw error
        }
        return turn
    }

    private func raiseLoads(before turn: Int, to urgency: Urgency) {
        let services = state.withLock { state in
            state.turns.raise(before: turn, to: urgency).compactMap { state.members.service(of: $0) }
        }
        for service in services {
            Task.detached(on: executor, priority: urgency.priority) { await service.raiseUrgency(to: urgency) }
        }
    }

    private func giveBack(_ turn: Int) {
        state.withLock { $0.turns.leave(turn) }?.complete(with: .success(()))
    }

    /// Returns the token that has the refresh token, and the edition that it belongs to.
    private func grant() async throws -> (token: AccessToken?, edition: Edition) {
        while true {
            let edition = state.withLock { $0.edition }
            // Perform all earlier sign-ins and sign-outs first.
            await wait(for: perform(.settle))
            let token: AccessToken?
            do {
                token = try await vault.retrieveToken()
            } catch let error as TokenServiceError where error.underlying is NoGrant {
                token = nil
            } catch {
                throw failure(error, over: edition)
            }
            // Sign-ins and sign-outs are counted before they reach the vault. So if none was counted meanwhile, the vault's grant
            // is of this edition.
            if state.withLock({ $0.edition }) == edition { return (token, edition) }
        }
    }

    /// Saves the refresh token that a load has brought, or a new expiration of the old one.
    ///
    /// Returns `false` if the grant has been replaced meanwhile, so that the load must begin again.
    private func keep(_ token: AccessToken?, given: AccessToken?, over edition: Edition) async -> Bool {
        guard let token = token.map(AccessToken.kept), token.refreshToken != nil, token != given else {
            return state.withLock { $0.edition } == edition
        }
        guard let end = perform(.keep(token, spent: given?.refreshToken), over: edition) else {
            let reason = state.withLock { $0.edition.fences > edition.fences ? $0.lastFence : .superseded }
            // Revoke only a new refresh token: the token that the load used is not this load's to give up.
            if token.refreshToken != given?.refreshToken, let outlet, let reason {
                Task.detached(on: loadExecutor) { await outlet.discard(DiscardedGrant(token: token, reason: reason)) }
            }
            return false
        }
        await wait(for: end)
        return true
    }
}
