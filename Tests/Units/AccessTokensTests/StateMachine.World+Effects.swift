@testable import AccessTokens

extension World {
    /// Performs the machine's decisions, as the actor does.
    mutating func performEffects() {
        let ending = machine.conclude()
        // The callback is considered lost.
        if let late = running, late.id != machine.keeper.operations.first?.id {
            check(now >= late.deadline + machine.policy.loadTimeout * (Self.timeoutsUntilForgotten - 1), "46: but not too early")
            if late.isWrite { lost = late }
            running = nil
        }
        let answered = lobby.open(ending.snapshot, answering: ending.answer?.mapError { $0 as any Error })
        if ending.start != nil, let flight = machine.state.flight { start(flight) }
        var latest = 0
        for effect in ending.effects {
            switch effect {
            case .gaveUp(_, let number): check(fences.contains(number), "a fence tells what it gave up before it ends")
            case .cancel(let id):
                check(
                    loads.allSatisfy { $0.id != id || machine.isRepeatable && !mayBringGrant($0) || isForgotten($0) },
                    "a load that may bring a grant is cancelled when it is forgotten, also if there was a fence")
            case .perform(let operation):
                check(machine.keeper.hasStore && running == nil, "the store does one thing at a time")
                if case .load = operation.kind {
                    check(!machine.isDrained, "a drained service asks no store")
                    let spends = !machine.isRepeatable && machine.keeper.grant.token?.refreshToken != nil
                    let isFirst = operation.generation == 0 && loads.isEmpty || operation.generation == foundEmpty
                    check(
                        machine.keeper.isUnread ? isFirst : spends,
                        "57: only a first miss, of a session or after another's sign-out, and a load that spends ask the store")
                }
                running = operation
            case .saveLentGrant: check(false, "nobody lends this service its grant")
            case .endFences(let numbers, _, _):
                for number in numbers { check(fences.remove(number) != nil, "a fence ends once") }
            case .discard(let grant):
                check(!discarded.contains(grant.token.value), "a grant is handed over once")
                discarded.append(grant.token.value)
                check(grant.token.value != machine.keeper.grant.token?.value, "the grant is not given up")
            case .announce(let event):
                check(
                    latest <= event.generation && event.generation <= machine.session.generation,
                    "19: events carry the generation, which never goes back")
                latest = event.generation
                note(event)
            }
        }
        let current = machine.state.isStalled ? nil : machine.state.flight?.load
        check(told == nil || told == current, "19: each load that was told to start is told to end")
        if let token = held, discarded.contains(token.value) { bar(token) }
        // A token that another load brings at the same moment is too late for the callers that are answered.
        if let result = ending.answer { checkSurvived(result) }
        note()
        guard let result = ending.answer else { return }
        answered.forEach { index in
            guard case .waiting(let place, let seen) = callers[index] else { return check(false, "exactly one answer") }
            callers[index] = .idle
            check((try? lobby.collectAnswer(at: place).get()) == (try? result.get()), "and that of its load")
            switch result {
            case .success(let token):
                checkServed(token, since: machine.session.lastReset, isArrival: true)
                checkSession(of: token, for: seen)
            case .failure(let error):
                check(
                    error.code != .reset || seen < machine.session.lastReset, "52: a sign-out's error is for calls from before it"
                )
            }
        }
    }

    /// 52: whether a token may be handed out to a call that began after the fence with this number.
    mutating func checkSession(of token: AccessToken, for seen: Int) {
        let generation = born[token.value]?.generation
        check(generation.map { $0 >= seen } ?? false, "52: a call gets nothing from before a fence that preceded it")
    }

    /// Checks a listener's knowledge of the loads: each ends with an event of its own, or with the fence that cuts it off.
    private mutating func note(_ event: TokenEvent) {
        switch event.name {
        case .loadStarted, .refreshStarted:
            check(told == nil && event.load != nil, "19: one load at a time")
            told = event.load
        case .loadSucceeded, .loadFailed, .refreshFailed, .restored, .loadDropped: if event.load == told { told = nil }
        case .reset, .replaced: told = nil
        default: break
        }
    }

    private mutating func start(_ flight: TokenService.StateMachine.Flight) {
        check(!machine.isDrained, "a drained service starts no load")
        check(
            insists || machine.state.cached == nil || flight.previous?.refreshToken == nil || machine.isRepeatable
                || !machine.keeper.isBehind,
            "50: no refresh ahead spends a grant while the store is behind")
        check(loads.count(where: stands) <= RefreshPolicy.abandonedFlights, "at most two loads beside the current one")
        check(
            machine.isRepeatable || !loads.contains(where: stands), "an unrepeatable load is not repeated while it runs")
        if let previous = flight.previous {
            check((born[previous.value]?.generation ?? 0) >= machine.session.lastReset, "no grant crosses a reset")
        }
        check(!loads.contains { $0.id == flight.id }, "a flight starts once")
        begun += 1
        loads.append(
            Load(
                id: flight.id, number: begun, start: flight.start, limit: machine.state.flight?.limit ?? flight.deadline,
                generation: machine.session.generation, hasGrant: flight.previous?.refreshToken != nil))
    }

    mutating func checkServed(_ token: AccessToken, since seen: Int, isArrival: Bool) {
        guard let (generation, end, hardEnd) = born[token.value] else { return check(false, "a token from nowhere") }
        check(now < end, "an expired token is not served")
        for case .save(let saving, _) in machine.keeper.operations.filter({ $0.flight != nil && !$0.isLate }).map(\.kind) {
            check(saving.value != token.value, "a token is saved before it is served")
        }
        // In a drained service no load may start, which has the same effect as a failed load.
        if machine.isDrained, now >= hardEnd { hasFailed = true }
        if !isArrival {
            check(
                now < hardEnd || token == held && hasFailed || survivesRefusal(token),
                "44: inside its leeway only after a transient failure")
        }
        check(!discarded.contains(token.value), "nor one whose grant was given up")
        check(generation >= machine.session.lastReset, "no token crosses a reset")
        check(refused?.token.value != token.value || survivesRefusal(token), "a refused token is not served")
    }

    /// 49: whether a refused token is in use, since refusals may cause no load.
    func survivesRefusal(_ token: AccessToken) -> Bool {
        machine.rejections.limit(at: now) != nil && machine.state.cached?.forRetry?.value == token.value
    }

    /// Whether a fence must not cancel a load; one that may be repeated is cancelled at its limit all the same.
    private func mayBringGrant(_ load: Load) -> Bool { load.hasGrant && load.generation < machine.session.generation }

    private func isForgotten(_ load: Load) -> Bool {
        now >= load.limit + machine.policy.loadTimeout * (Self.timeoutsUntilForgotten - 1)
    }

    /// 46: whether a load blocks others; not if it is from before a fence, nor long after its start.
    private func stands(_ load: Load) -> Bool {
        load.generation == machine.session.generation && !isForgotten(load)
    }

    /// Checks that a caller gets a transient error only if there is no token that is still valid for a while.
    mutating func checkSurvived(_ result: Machine.Answer) {
        guard case .failure(let error) = result, error.remedy == .retry, let held, let last = born[held.value] else { return }
        let leeway = last.end - last.hardEnd
        check(now >= last.end - leeway / 10, "44: an outage that the token survives costs no caller")
    }

    /// Notes which token might survive an outage: the last one, until a refusal or a fence.
    private mutating func note() {
        guard let token = (machine.state.cached ?? machine.reserve)?.token, token != held, !barred.contains(token.value)
        else { return }
        held = token
        hasFailed = false
    }

    mutating func bar(_ token: AccessToken?) {
        if let token { barred.insert(token.value) }
        if token == held { held = nil }
    }

    mutating func checkInvariants() {
        check(machine.reserve == nil || machine.state.cached == nil, "a token is handed out, or kept back")
        let waiting = callers.indices.filter { if case .waiting = callers[$0] { true } else { false } }
        var queued: [Int] = []
        lobby.waiters.forEach { queued.append($0) }
        check(queued.sorted() == waiting && lobby.waiters.count == waiting.count, "no waiter is forgotten, none answered stays")
        if machine.signInState == nil, let flight = machine.state.flight {
            let isUnderWay = machine.keeper.operations.contains { $0.flight == flight.id }
            check(flight.isCheck && isUnderWay, "a question waits for the store only")
        }
        check(lobby.uncollectedAnswers == 0, "no answer outlives its callers")
        switch machine.state {
        case .loading: break
        case .refreshing(_, let flight) where demands && !flight.isCheck: break
        default: check(waiting.isEmpty, "callers wait for a load only")
        }
        if let flight = machine.state.flight {
            let atWork = loads.map(\.id) + machine.keeper.operations.compactMap(\.flight)
            check(atWork.contains(flight.id), "the current flight is under way")
            check(!flight.isGivenUp && machine.abandoned.allSatisfy(\.isGivenUp), "a flight is current or given up")
            check(!machine.abandoned.contains { $0.id == flight.id }, "a flight is current or abandoned")
        }
        let flights = (machine.abandoned + [machine.state.flight].compactMap { $0 }).map(\.id) + machine.fenced.map(\.id)
        let stored = machine.keeper.operations.compactMap(\.flight).filter(flights.contains)
        check(flights.count == loads.count + stored.count, "every load is accounted for")
        check(machine.keeper.operations.count <= 3, "a store that hangs collects nothing")
        check(running?.id == machine.keeper.operations.first?.id, "the first operation runs")
        check(fences.isSubset(of: machine.keeper.operations.flatMap(\.fences)), "no fence waits for nothing")
        if machine.keeper.isLate {
            check(fences.isEmpty, "nothing waits for a store that is late")
            if case .saving? = machine.state.flight?.phase { check(false, "no caller either") }
        }
        let isExpected = loads.contains { !isForgotten($0) }
        check(
            machine.isAtWork(at: now) == (running != nil || isExpected),
            "45: a service is done when no load or save is to be expected"
        )
        let isTokenEnded = lobby.notices.contains { $0.act.isFence || machine.state.cached?.token == $0.act.refused }
        let shown = isTokenEnded ? nil : machine.state.cached?.token
        check(lobby.snapshot.hit.token == shown, "the snapshot shows the state's token")
        check(lobby.snapshot.hit.generation == lobby.notices.last?.number ?? machine.session.generation, "and its generation")
    }
}

extension TokenService.Notice.Act {
    fileprivate var refused: AccessToken? { if case .refusal(let token, _) = self { token } else { nil } }
}
