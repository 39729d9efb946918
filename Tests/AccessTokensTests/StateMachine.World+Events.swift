@testable import AccessTokens

extension World {
    mutating func perform(_ event: Event) {
        switch event {
        case .tick:
            now += Self.step
            if let until = refused?.until, until <= now { refused = nil }
            machine.elapse(to: now)
        case .call(let index): callers[index] = .called(seen: machine.generation)
        case .arrive(let index): arrive(index)
        case .leave(let index):
            guard case .waiting(let id) = callers[index] else { return }
            check(machine.leave(id) == index, "a caller that waits can leave")
            check(machine.leave(id) == nil, "a caller leaves once")
            callers[index] = .idle
        case .succeed(let id): deliver(id) { $0.newToken(lifetime: Self.lifetime, from: $1.start) }
        case .succeedExpired(let id): deliver(id) { $0.newToken(lifetime: .zero, from: $1.start) }
        case .succeedBarely(let id):
            // As long as it took and a little more: inside its own leeway.
            deliver(id) { $0.newToken(lifetime: $0.now - $1.start + .milliseconds(1), from: $1.start) }
        case .succeedWithRejected(let id):
            deliver(id) { world, load in
                world.refused?.token ?? world.newToken(lifetime: .zero, from: load.start)
            }
        case .fail(let id): fail(id, remedy: .retry, retryAfter: nil)
        case .failWithRetryAfter(let id): fail(id, remedy: .retry, retryAfter: .seconds(30))
        case .failForGood(let id): fail(id, remedy: .signIn, retryAfter: nil)
        case .refreshAhead: machine.refreshAhead(at: now)
        case .invalidateCurrent:
            guard let token = machine.state.servable?.token else { return }
            refused = (token, now + (token.lifetime ?? .zero))
            machine.invalidate(token, at: now)
            if let end = born[token.value]?.end, end > now {
                check(machine.state.servable == nil, "a refused token is dropped")
            }
        case .invalidateOlder:
            guard let token = refused?.token else { return }
            let before = machine.state.servable?.token
            machine.invalidate(token, at: now)
            refused?.until = now + (token.lifetime ?? .zero)
            if let before, before.value != token.value, machine.state.servable == nil {
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
            machine.reset()
        case .retryNow: machine.retryNow(at: now)
        case .findStored(let id):
            restores.removeAll { $0 == id }
            let token = newToken(lifetime: Self.lifetime, from: now - Self.step)
            if machine.lastReset > 0 || machine.generation > 0 { born[token.value]?.generation = -1 }
            settled = token.value
            machine.restored((token, Self.step), by: id, at: now)
        case .findNothing(let id):
            restores.removeAll { $0 == id }
            machine.restored(nil, by: id, at: now)
        case .failToRestore(let id):
            restores.removeAll { $0 == id }
            machine.restoreFailed(TokenServiceError(.storeFailed), by: id, at: now)
        case .endSave(let id), .failToSave(let id):
            saves.removeAll { $0 == id }
            settle(id)
            let error = event == .failToSave(id) ? TokenServiceError(.storeFailed) : nil
            machine.saved(by: id, error: error, at: now)
        }
        performEffects()
        // What a fence made the machine forget ends unnoticed.
        let flights = machine.abandoned + [machine.state.flight].compactMap { $0 }
        let known = flights.map(\.id)
        restores.removeAll { !known.contains($0) }
        saves.removeAll { !known.contains($0) }
        checkInvariants()
        var tokens = [machine.state.servable?.token, machine.grant, refused?.token].compactMap { $0?.value }
        for flight in flights { if case .saving(let token, _) = flight.phase { tokens.append(token.value) } }
        born = born.filter { tokens.contains($0.key) }
    }

    /// A token given from outside belongs to the generation that its own fence began.
    private mutating func rebear() {
        guard let token = machine.grant else { return }
        born[token.value]?.generation = machine.generation
    }

    private mutating func arrive(_ index: Int) {
        guard case .called(let seen) = callers[index] else { return }
        switch machine.retrieve(seen: seen, at: now) {
        case .wait(let id, let flight):
            check(machine.state.flight?.id == flight, "a caller waits for the current flight")
            check(machine.waiters.fill(id, with: index), "a place that was just taken is there")
            callers[index] = .waiting(id)
        case .answer(let result):
            callers[index] = .idle
            if case .success(let token) = result { checkServed(token, since: seen, isArrival: false) }
        }
    }

    /// The token of a flight whose save ends.
    private mutating func settle(_ id: Int) {
        for flight in machine.abandoned + [machine.state.flight].compactMap({ $0 }) where flight.id == id {
            if case .saving(let token, _) = flight.phase { settled = token.value }
        }
    }

    private mutating func deliver(_ id: Int, _ token: (inout World, Load) -> AccessToken) {
        guard let index = loads.firstIndex(where: { $0.id == id }) else { return }
        let load = loads.remove(at: index)
        let generation = machine.generation
        let token = token(&self, load)
        // A server that hands out an old token again vouches for its life anew.
        if let lifetime = token.lifetime, token.value == refused?.token.value {
            let end = load.start + lifetime
            born[token.value] = (load.generation, end, end - lifetime / 10)
        }
        if born[token.value]?.end != nil, refused?.token.value != token.value {
            born[token.value]?.generation = load.generation
        }
        machine.loaded(token, by: id, at: now)
        check(machine.generation == generation, "a load is no fence")
    }

    private mutating func fail(_ id: Int, remedy: LoadRemedy, retryAfter: Duration?) {
        loads.removeAll { $0.id == id }
        machine.failed(TokenServiceError(.loadFailed, remedy: remedy), retryAfter: retryAfter, by: id, at: now)
    }

    private mutating func performEffects() {
        for effect in machine.takeEffects() {
            switch effect {
            case .start(let flight, let previous):
                check(loads.count <= RefreshPolicy.abandonedFlights, "at most two loads beside the current one")
                check(
                    machine.isRepeatable || !loads.contains { $0.generation == machine.generation },
                    "an unrepeatable load is not repeated while it runs")
                if let previous {
                    check((born[previous.value]?.generation ?? 0) >= machine.lastReset, "no grant crosses a reset")
                }
                loads.append(Load(id: flight.id, start: flight.start, generation: machine.generation))
            case .cancel(let id):
                check(
                    machine.isRepeatable || loads.allSatisfy { $0.id != id || $0.generation < machine.generation },
                    "an unrepeatable load is cancelled by a fence only")
            case .restore(let flight):
                check(machine.hasStore && loads.isEmpty && machine.generation == 0, "only the first miss asks the store")
                restores.append(flight.id)
            case .save(_, _, let flight): if let flight { saves.append(flight) }
            case .remove: check(machine.hasStore, "without a store nothing is removed")
            case .announce(let event):
                check(event.generation == machine.generation, "events carry the generation")
            case .answer(let waiters, let result):
                waiters.forEach { index in
                    guard case .waiting = callers[index] else { return check(false, "exactly one answer") }
                    callers[index] = .idle
                    if case .success(let token) = result { checkServed(token, since: machine.lastReset, isArrival: true) }
                }
            }
        }
    }

    private mutating func checkServed(_ token: AccessToken, since seen: Int, isArrival: Bool) {
        guard let (generation, end, hardEnd) = born[token.value] else { return check(false, "a token from nowhere") }
        check(now < end, "an expired token is not served")
        check(!machine.hasStore || token.value == settled || !isArrival, "a token is saved before it is served")
        if !isArrival { check(now < hardEnd, "nor one inside its leeway") }
        check(generation >= machine.lastReset, "no token crosses a reset")
        check(refused?.token.value != token.value, "a refused token is not served")
    }

    private mutating func checkInvariants() {
        let waiting = callers.indices.filter { if case .waiting = callers[$0] { true } else { false } }
        var queued: [Int] = []
        machine.waiters.forEach { queued.append($0) }
        check(queued.sorted() == waiting && machine.waiters.count == waiting.count, "no waiter is forgotten, none answered stays")
        if case .loading = machine.state {} else { check(waiting.isEmpty, "callers wait for a load only") }
        if let flight = machine.state.flight {
            let running = loads.map(\.id) + restores + saves
            check(running.contains(flight.id), "the current flight is under way")
            check(!machine.abandoned.contains { $0.id == flight.id }, "a flight is current or abandoned")
        }
        check(
            machine.abandoned.count + (machine.state.flight == nil ? 0 : 1) == loads.count + restores.count + saves.count,
            "every load is accounted for")
        check(machine.snapshot.servable?.token == machine.state.servable?.token, "the snapshot shows the state's token")
        check(machine.snapshot.generation == machine.generation, "and its generation")
    }
}
