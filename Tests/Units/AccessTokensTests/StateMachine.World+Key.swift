@testable import AccessTokens

extension World {
    /// All that the future depends on, and nothing else: names and absolute times are left out.
    ///
    /// With a store, the time at which an overtaken load is forgotten is left out, too.
    var key: [Int8] {
        var key: [Int] = []
        key.reserveCapacity(64)
        func steps(_ time: Duration?) -> Int {
            guard let time else { return -1 }
            let left = (time - now) / Self.step
            return left <= 0 ? 0 : min(Int(left.rounded(.up)), 9)
        }
        func age(_ start: Duration) -> Int { min(Int((now - start) / Self.step), 5) }
        /// Returns whether it began after the refusal.
        func isNewer(_ flight: Machine.Flight) -> Int {
            let load = loads.first { $0.id == flight.id }?.number ?? 0
            return refused.map { load > $0.begun } ?? false ? 1 : 0
        }
        func add(_ flight: Machine.Flight) {
            key += [age(flight.start), steps(flight.limit), flight.publications == machine.publications ? 1 : 0, isNewer(flight)]
            key.append(flight.previous == machine.keeper.grant.token ? 1 : 0)
            switch flight.phase {
            case .loading: break
            case .checking: key.append(-6)
            case .saving(let token, let origin): key += [origin == .program ? -7 : -8, verdict(token, flight)]
            }
        }
        /// Returns what matters about a token in the future: its end, and whether it was refused.
        func verdict(_ token: AccessToken, _ flight: Machine.Flight) -> Int {
            let end = token.lifetime.map { Self.hardEnd(of: $0, from: flight.start) }
            return steps(end) * 2 + (refused?.token.value == token.value ? 1 : 0)
        }
        func storeKey(_ operation: GrantKeeper.Operation) -> [Int] {
            let known = (machine.abandoned + [machine.state.flight].compactMap { $0 }).contains { $0.id == operation.flight }
            let flags = [operation.isLate, known, !operation.fences.isEmpty, operation.handsOver]
            return [operation.kind.key] + flags.map { $0 ? 1 : 0 } + [operation.generation == machine.session.generation ? 1 : 0]
        }
        func add(_ cached: TokenService.CachedToken) {
            let end = steps(cached.expiry)
            key += [end, min(steps(cached.refreshFrom), end), min(steps(cached.refreshStart), end)]
            key.append(min(cached.failedRefreshes, 1) + (cached.isInLeeway ? 2 : 0) + (cached.forRetry == nil ? 0 : 4))
            key.append(steps(cached.inLeeway(at: now)?.expiry))
        }
        switch machine.state {
        case .empty: key.append(0)
        case .loading(let flight):
            key.append(1)
            add(flight)
        case .fresh(let cached):
            key.append(2)
            add(cached)
        case .refreshing(let cached, let flight):
            key.append(3)
            add(cached)
            add(flight)
        case .stalled(let cached, let flight):
            key.append(cached == nil ? 4 : 5)
            if let cached { add(cached) }
            add(flight)
        }
        if demands { key.append(steps(machine.tokenEnd)) }
        key.append(-2)
        if let reserve = machine.reserve?.inLeeway(at: now) { add(reserve) }
        // The checks' knowledge of that token.
        let isHeld = held != nil && held == (machine.state.cached ?? machine.reserve)?.token
        key.append(held == nil ? -15 : isHeld ? (hasFailed ? -16 : -17) : -18)
        key.append(-5)
        // An overtaken load only counts against the limit, for a time; any other can still bring a token. All that no longer
        // count are equivalent.
        let givenUp = machine.abandoned.map { flight in
            let counts = self.counts(flight), isAlike = machine.keeper.hasStore && flight.publications != machine.publications
            let kind = isAlike ? 0 : (counts ? steps(machine.endOfPatience(with: flight)) : 9) * 2 + isNewer(flight)
            return (counts: counts, key: kind * 3 + flight.phase.key)
        }
        key += givenUp.filter(\.counts).map(\.key).sorted()
        let fenced = machine.fenced.isEmpty ? [] : [-20]
        key += Set(givenUp.filter { !$0.counts }.map { -20 - $0.key } + fenced).sorted()
        key += machine.keeper.operations.flatMap(storeKey)
        if let end = machine.keeper.lostFrom { key.append(steps(end)) }
        if let unsaved = machine.keeper.unsaved, running == nil, let last = machine.keeper.lastWrite {
            key += [-33, steps(unsaved.nextAttempt), last.kind.key]
        }
        if let lost { key += storeKey(lost) + [-32, lost.id == machine.keeper.lastWrite?.id ? 1 : 0] }
        if lost != nil, let last = machine.keeper.lastWrite { key.append(last.kind.key) }
        key.append((machine.keeper.isUnread ? 1 : 0) + (machine.isDrained ? 2 : 0))
        key.append(-3)
        key.append(machine.keeper.grant.token == nil ? 0 : 1)
        key += machine.backOff.key(at: now, steps: steps)
        key += machine.rejections.key(at: now)
        // Callers are equivalent, so count those that wait, those from before a reset, and new ones.
        func rank(_ seen: Int) -> Int { lobby.notices.count { $0.act.isFence && $0.number <= seen } }
        let ranks = callers.map { caller in
            switch caller {
            case .idle: 0
            case .called(let seen): seen < machine.session.lastReset ? 1 : 10 + rank(seen)
            case .waiting(_, let seen): seen < machine.session.lastReset ? 2 : 20 + rank(seen)
            }
        }
        key += lobby.notices.map { $0.key - 40 } + [meanwhile.map { Int($0.rawValue) } ?? -1]
        key += ranks.sorted() + [refused?.token.value == machine.state.cached?.token.value ? 1 : 0, steps(refused?.until)]
        // All numbers are small, but a set of a million keys isn't.
        return key.map { Int8(clamping: $0) }
    }
}

extension TokenService.StateMachine.Phase {
    fileprivate var key: Int {
        switch self {
        case .loading: 0
        case .checking: 1
        case .saving: 2
        }
    }
}

extension GrantKeeper.Kind {
    fileprivate var key: Int {
        switch self {
        case .load: -9
        case .save: -10
        case .remove: -11
        }
    }
}

extension BackOff {
    fileprivate func key(at now: Duration, steps: (Duration?) -> Int) -> [Int] {
        switch gate {
        // From the second failure on, every pause takes one step.
        case .open: [0, 0, min(failures, 1)]
        case .opens(let moment): [1, steps(moment), min(failures, 1)]
        case .closed: [2, 0, min(failures, 1)]
        }
    }
}

extension Rejections {
    fileprivate func key(at now: Duration) -> [Int] {
        [-4, causeNextLoad ? 1 : 0, loads.count { now < $0 + RefreshPolicy.invalidationPeriod }]
    }
}

extension TokenService.Notice {
    fileprivate var key: Int {
        switch act {
        case .signIn(let token): token.lifetime == .zero ? 0 : 1
        case .signOut: 2
        case .refusal: 3
        }
    }
}
