@testable import AccessTokens
import TokenServiceConcurrency

extension World {
    mutating func perform(_ event: Event) {
        path.append(event)
        switch event {
        case .call(let index):
            let seen = lobby.snapshot.hit.generation
            callers[index] = .called(seen: seen)
            if let token = lobby.snapshot.token(at: now) { checkSession(of: token, for: seen) }
        case .act(let act): perform(act)
        case .actMeanwhile(let act): meanwhile = act
        case .join(let index): join(index)
        case .leave(let index): leave(index)
        default: step(event)
        }
        checkInvariants()
    }

    /// Lets a caller join a load without entering the actor; the machine is told with its next event.
    private mutating func join(_ index: Int) {
        guard case .called(let seen) = callers[index] else { return }
        guard let place = lobby.join(seen: seen, at: now) else { return }
        if case .loading = machine.state {} else { check(false, "there is a load to join") }
        check(seen >= machine.session.lastReset, "a caller from before a reset joins nothing after it")
        check(!lobby.notices.contains { $0.act.isFence }, "52: nobody joins a load that a fence ends")
        check(lobby.suspend(index, at: place), "the caller can't have been answered yet")
        callers[index] = .waiting(place, seen: seen)
    }

    private mutating func leave(_ index: Int) {
        guard case .waiting(let place, _) = callers[index] else { return }
        let error = Lobby.Answer.failure(CancellationError())
        check(lobby.leave(place, with: error) == index, "a caller that waits can leave")
        check(lobby.leave(place, with: error) == nil, "a caller leaves once")
        if case .success = lobby.collectAnswer(at: place) { check(false, "with an answer of its own") }
        callers[index] = .idle
    }

    /// The token that callers see, or one that the program has given and the machine hasn't heard of yet.
    var refusable: AccessToken? { lobby.snapshot.hit.token ?? lobby.notices.last?.act.token }

    /// The program signs in or out, or refuses the token that it sees: this takes effect for callers at once.
    private mutating func perform(_ act: Act) {
        let made: TokenService.Notice.Act
        switch act {
        case .signsIn: made = .signIn(newToken(lifetime: Self.lifetime, from: now))
        case .signsInWithGrant: made = .signIn(newToken(lifetime: .zero, from: now))
        case .signsOut: made = .signOut
        case .refuses:
            guard let token = refusable else { return }
            made = .refusal(token)
            noteRefusal(of: token)
        }
        _ = lobby.note(made, for: nil, at: now)
        if made.isFence {
            let isShown = lobby.snapshot.hit.token != nil || lobby.snapshot.joinableUntil > .zero
            check(!isShown, "52: nothing from before a fence is seen")
        }
    }

    private mutating func noteRefusal(of token: AccessToken) {
        bar(token)
        refused = (token, now + (token.lifetime ?? .zero), begun)
        refusals[token.value] = refused?.until
    }

    /// The machine learns of an act of the program.
    private mutating func heed(_ notice: TokenService.Notice) {
        let granted = machine.keeper.grant.token?.value
        machine.heed(notice, at: now)
        if case .refusal(let token, _) = notice.act { return noteRefusal(of: token) }
        refused = nil
        bar(held)
        fences.insert(notice.number)
        check(machine.session.generation == notice.number, "52: callers know a fence's number before the machine does")
        if notice.act.token == nil, let granted { givenUp.append(granted) } else { rebear() }
    }

    /// The events that reach the actor.
    private mutating func step(_ event: Event) {
        let (joined, isAwaited, _, notices) = lobby.close()
        machine.callersJoined(joined, isAwaited: isAwaited)
        for notice in notices { heed(notice) }
        var entered: (caller: Int, seen: Int)?
        let granted = machine.keeper.grant.token?.value
        expect(event)
        switch event {
        case .call, .join, .leave, .act, .actMeanwhile: break
        case .tick:
            now += Self.step
            if loads.contains(where: { $0.start + machine.policy.loadTimeout == now }) { hasFailed = true }
            if let last = refused, last.until <= now { refused = nil }
            // If the server hands out a refused token again, it counts as valid again.
            for (token, until) in refusals where until <= now {
                barred.remove(token)
                refusals[token] = nil
            }
            machine.elapse(to: now)
        case .arrive(let index): if let seen = arrive(index) { entered = (index, seen) }
        case .arriveDemanding(let index):
            if let seen = arrive(index, demanding: .validFor(.seconds(1_000))) { entered = (index, seen) }
        case .arriveInsisting(let index):
            insists = true
            if let seen = arrive(index, demanding: .loadedAfter(machine.flights)) { entered = (index, seen) }
        case .succeed(let id): deliver(id) { $0.newToken(lifetime: Self.lifetime, from: $1.start) }
        case .succeedExpired(let id): deliver(id) { $0.newToken(lifetime: .zero, from: $1.start) }
        case .succeedBarely(let id):
            // Slightly longer than the load took, so that the token arrives inside its own leeway.
            deliver(id) { $0.newToken(lifetime: $0.now - $1.start + .milliseconds(1), from: $1.start) }
        case .succeedWithRejected(let id):
            deliver(id) { world, load in
                world.refused?.token ?? world.newToken(lifetime: .zero, from: load.start)
            }
        case .fail(let id): fail(id, remedy: .retry, retryAfter: nil)
        case .failWithRetryAfter(let id): fail(id, remedy: .retry, retryAfter: .seconds(30))
        case .failForGood(let id): fail(id, remedy: .signIn, retryAfter: nil)
        case .failSalvaging(let id): salvage(id)
        case .refreshAhead: machine.refreshAhead(at: now)
        case .invalidateCurrent:
            guard let token = machine.state.cached?.token ?? machine.reserve?.token else { return }
            noteRefusal(of: token)
            machine.invalidate(token, at: now)
            if let end = born[token.value]?.end, end > now {
                check(machine.state.cached == nil || survivesRefusal(token), "a refused token is dropped")
            }
        case .invalidateOlder:
            guard let token = refused?.token else { return }
            let before = machine.state.cached?.token
            bar(token)
            machine.invalidate(token, at: now)
            refused = (token, now + (token.lifetime ?? .zero), begun)
            refusals[token.value] = refused?.until
            if let before, before.value != token.value, machine.state.cached == nil {
                check(born[before.value].map { $0.hardEnd <= now } ?? false, "a late refusal drops nothing else")
            }
        case .replace:
            refused = nil
            machine.replace(with: newToken(lifetime: Self.lifetime, from: now), at: now)
            rebear()
        case .replaceExpired:
            refused = nil
            machine.replace(with: newToken(lifetime: .zero, from: now), at: now)
            rebear()
        case .reset:
            refused = nil
            machine.reset(at: now)
        case .retryNow: machine.retryNow(at: now)
        case .drain: machine.drain(at: now)
        case .resume: machine.drain(false, at: now)
        case .ask: ask()
        case .storeFinds: endStore(finding: newToken(lifetime: Self.lifetime, from: now - Self.step), error: nil)
        case .storeFindsOwn: endStore(finding: machine.keeper.grant.token, error: nil)
        case .storeEnds: endStore(finding: nil, error: nil)
        case .storeFails: endStore(finding: nil, error: TokenServiceError(.storeFailed))
        case .lostEnds: endLost(error: nil)
        case .lostFails: endLost(error: TokenServiceError(.storeFailed))
        }
        if [.reset, .replace, .replaceExpired].contains(event) { fences.insert(machine.session.generation) }
        discarded = []
        let act = meanwhile.take()
        if let act, act != .refuses { perform(act) }
        let begun = loads.count
        performEffects()
        insists = false
        check(event != .ask || !notices.isEmpty || loads.count == begun, "a question starts no load")
        // Only now is it known which token callers see.
        if act == .refuses { perform(.refuses) }
        let flights = machine.abandoned + [machine.state.flight].compactMap { $0 }
        if event == .reset, let granted { givenUp.append(granted) }
        check(givenUp.allSatisfy(discarded.contains), "a grant that the service gives up reaches the program")
        givenUp = []
        endForgotten()
        if let entered {
            let place = lobby.admit(urgency: .background)
            check(lobby.suspend(entered.caller, at: place), "a place that was just taken is there")
            callers[entered.caller] = .waiting(place, seen: entered.seen)
        }
        var tokens = [machine.state.cached?.token, machine.reserve?.token, held, machine.keeper.grant.token, refused?.token]
            .compactMap {
                $0?.value
            }
        tokens += lobby.notices.compactMap { $0.act.token?.value }
        for flight in flights { if case .saving(let token, _) = flight.phase { tokens.append(token.value) } }
        born = born.filter { tokens.contains($0.key) }
        barred.formIntersection(tokens)
        refusals = refusals.filter { tokens.contains($0.key) }
    }

    /// Of the loads that no longer count, keep one of each kind, a fenced one rather than an overtaken one: they are equivalent,
    /// and would accumulate.
    private mutating func endForgotten() {
        var kinds: Set<Bool> = machine.fenced.isEmpty ? [] : [false]
        let forgotten = machine.abandoned.filter { $0.isLoading && !counts($0) }.filter {
            !kinds.insert($0.publications == machine.publications).inserted
        }
        for id in forgotten.map(\.id) + machine.fenced.dropFirst().map(\.id) {
            loads.removeAll { $0.id == id }
            machine.ended(.failed(FlightFailure(error: TokenServiceError(.loadFailed))), by: id, at: now)
        }
        _ = machine.conclude()
    }

    /// Updates the token that may survive an outage after an event.
    private mutating func expect(_ event: Event) {
        switch event {
        case .replace, .replaceExpired, .reset: bar(held)
        case .failForGood(let id):
            // A late refusal counts like one in time, unless a newer load will decide.
            if machine.state.flight == nil, !isOutdated(id), grantFromMeanwhile(for: id) == nil { return bar(held) }
            guard let flight = machine.state.flight, flight.id == id else { return }
            // An older load has brought a token meanwhile: this load's end doesn't matter while that token is good.
            let isGood = machine.state.cached.map { $0.isValid(at: now) && !$0.isInLeeway } ?? false
            if !isGood || flight.publications == machine.publications { bar(held) }
        case .fail, .failWithRetryAfter, .failSalvaging, .succeedExpired, .succeedBarely, .succeedWithRejected: hasFailed = true
        default: break
        }
    }

    /// A token given from outside belongs to the generation that its own fence began.
    private mutating func rebear() {
        guard let token = machine.keeper.grant.token else { return }
        born[token.value]?.generation = machine.session.generation
    }

    /// Returns the generation that the caller saw, if it waits.
    private mutating func arrive(_ index: Int, demanding demand: Machine.Demand? = nil) -> Int? {
        guard case .called(let seen) = callers[index] else { return nil }
        let good = machine.state.cached, until = machine.tokenEnd, before = machine.flights
        guard let result = machine.retrieve(seen: seen, demand: demand, at: now) else {
            switch machine.state {
            case .loading: break
            case .refreshing(_, let flight): check(demand != nil && !flight.isCheck, "a demand waits for a load")
            default: check(false, "a caller waits for the current flight")
            }
            if !insists, let good, good.isValid(at: now), machine.flights > before {
                let half = (good.token.lifetime ?? .forever) / 2
                check((until ?? .forever) - now < half, "56: half of a token's life passes before a demand ends it")
            }
            return seen
        }
        callers[index] = .idle
        if insists {
            if case .success = result { check(false, "56: a call that insists on a load gets no older token") }
            return nil
        }
        if demand != nil, good?.isValid(at: now) ?? false, seen >= machine.session.lastReset {
            check((try? result.get()) != nil, "56: a demand fails no call that has a token")
        }
        if seen >= machine.session.lastReset { checkSurvived(result) }
        if case .success(let token) = result {
            checkServed(token, since: seen, isArrival: false)
            checkSession(of: token, for: seen)
        }
        return nil
    }

    /// The store's operation ends; a token from before this service began belongs to none of its generations.
    private mutating func endStore(finding token: AccessToken?, error: TokenServiceError?) {
        guard let operation = running else { return }
        running = nil
        let isOwn = token != nil && token == machine.keeper.grant.token
        let isAdopted = machine.keeper.isUnread && operation.generation == foundEmpty
        if let token, !isOwn, machine.session.generation > 0 {
            // After another service's sign-out the next token is that of its next user.
            born[token.value]?.generation = isAdopted ? machine.session.generation : -1
        }
        let rereads = machine.state.flight?.id == operation.flight && !operation.isWrite && !machine.keeper.isUnread
        let session = machine.session.generation, waits = isWaiting
        machine.storeEnded(operation, found: token.map { ($0, Self.step) }, error.map { .init(error: $0) }, at: now)
        if let token, operation.handsOver { givenUp.append(token.value) }
        checkLastWord(operation, error)
        guard rereads else { return }
        let isFence = machine.session.generation > session
        check(isFence == (error == nil && !isOwn), "57: another service's change is a fence, and nothing else is")
        if isFence {
            let counts = machine.keeper.grant.token == token && machine.state.flight == nil
            check(counts, "57: what the store has counts, even nothing")
            if token == nil { foundEmpty = machine.session.generation }
            refused = nil
            bar(held)
            rebear()
        } else if waits {
            check(machine.state.flight?.isLoading ?? true, "57: the load follows for callers that wait")
        }
    }

    private var isWaiting: Bool { lobby.waiters.count > 0 }

    /// An operation that was considered lost ends, and takes effect only now.
    private mutating func endLost(error: TokenServiceError?) {
        guard let operation = lost.take() else { return }
        machine.storeEnded(operation, found: nil, error.map { .init(error: $0) }, at: now)
        checkLastWord(operation, error)
    }

    private mutating func checkLastWord(_ operation: GrantKeeper.Operation, _ error: TokenServiceError?) {
        guard error == nil, operation.isWrite, machine.keeper.operations.isEmpty, let last = machine.keeper.lastWrite
        else {
            return
        }
        check(operation.id == last.id, "46: what the service decided last is what the store has been told last")
    }

    private mutating func deliver(_ id: Int, _ token: (inout World, Load) -> AccessToken) {
        guard let index = loads.firstIndex(where: { $0.id == id }) else { return }
        let load = loads.remove(at: index)
        let generation = machine.session.generation
        let token = token(&self, load)
        // If the server hands out an old token again, its lifetime begins again.
        if let lifetime = token.lifetime, token.value == refused?.token.value {
            let end = load.start + lifetime
            born[token.value] = (load.generation, end, Self.hardEnd(of: lifetime, from: load.start))
        }
        if born[token.value]?.end != nil, refused?.token.value != token.value {
            born[token.value]?.generation = load.generation
        }
        let isOutdated = isOutdated(id)
        let meanwhile = grantFromMeanwhile(for: id)
        if !isOutdated, let last = refused, last.token.value == token.value, load.number > last.begun {
            refused = nil
            refusals[token.value] = nil
            barred.remove(token.value)
        }
        machine.ended(.loaded(token), by: id, at: now)
        check(machine.session.generation == generation, "a load is no fence")
        if isOutdated { givenUp.append(token.value) }
        if let meanwhile, !isOutdated, meanwhile != token {
            givenUp.append(machine.keeper.grant.token == token ? meanwhile.value : token.value)
        }
    }

    private mutating func fail(_ id: Int, remedy: TokenServiceError.Remedy, retryAfter: Duration?) {
        loads.removeAll { $0.id == id }
        let error = TokenServiceError(.loadFailed, remedy: remedy)
        machine.ended(.failed(FlightFailure(error: error, retryAfter: retryAfter)), by: id, at: now)
    }

    /// A load fails with a new grant, which is kept or handed over.
    private mutating func salvage(_ id: Int) {
        let load = loads.first { $0.id == id }
        loads.removeAll { $0.id == id }
        let grant = newToken(lifetime: .zero, from: now)
        born[grant.value]?.generation = load?.generation ?? machine.session.generation
        let isOutdated = isOutdated(id)
        let meanwhile = grantFromMeanwhile(for: id)
        machine.ended(.failed(FlightFailure(error: TokenServiceError(.loadFailed), salvaged: grant)), by: id, at: now)
        if isOutdated {
            givenUp.append(grant.value)
        } else if let meanwhile {
            givenUp.append(machine.keeper.grant.token == grant ? meanwhile.value : grant.value)
        } else {
            check(machine.keeper.grant.token == grant, "a salvaged grant is kept")
        }
    }

    /// Returns the grant that arrived while this load ran and that it didn't use up: either that grant or the load's own is given
    /// up.
    private func grantFromMeanwhile(for id: Int) -> AccessToken? {
        let flight = (machine.abandoned + [machine.state.flight].compactMap { $0 }).first { $0.id == id }
        return flight?.previous == machine.keeper.grant.token ? nil : machine.keeper.grant.token
    }

    private mutating func ask() {
        guard let state = machine.askSignInState(at: now) else { return }
        switch state.code {
        case .validToken, .signedIn:
            let last = machine.keeper.grant.token.flatMap { born[$0.value] }
            check(last.map { $0.generation >= machine.session.lastReset } ?? false, "only a grant of this session counts")
            check(state.code == .signedIn || machine.state.cached?.isValid(at: now) == true, "a valid token is valid")
        case .signedOut:
            let isRefused = if case .closed = machine.backOff.gate { true } else { false }
            check(machine.keeper.grant.token == nil || isRefused && state.error != nil, "a grant counts until it is refused")
        default: check(machine.keeper.isUnread && state.error != nil, "only a store that can't be read leaves it open")
        }
    }

    private func isOutdated(_ id: Int) -> Bool {
        machine.state.flight?.id != id
            && !machine.abandoned.contains { $0.id == id && $0.publications == machine.publications }
    }
}
