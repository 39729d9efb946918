@testable import AccessTokens

extension World {
    /// What the actor does with what the machine decided.
    mutating func performEffects() {
        let effects = machine.takeEffects()
        var answer: Lobby.Answer?
        for case .answer(let result) in effects {
            check(answer == nil, "an event answers once")
            answer = result.mapError { $0 }
        }
        let answered = lobby.open(machine.snapshot, answering: answer)
        for effect in effects {
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
            case .answer(let result):
                answered.forEach { index in
                    guard case .waiting = callers[index] else { return check(false, "exactly one answer") }
                    callers[index] = .idle
                    if case .success(let token) = result { checkServed(token, since: machine.lastReset, isArrival: true) }
                }
            }
        }
    }

    mutating func checkServed(_ token: AccessToken, since seen: Int, isArrival: Bool) {
        guard let (generation, end, hardEnd) = born[token.value] else { return check(false, "a token from nowhere") }
        check(now < end, "an expired token is not served")
        check(!machine.hasStore || token.value == settled || !isArrival, "a token is saved before it is served")
        if !isArrival { check(now < hardEnd, "nor one inside its leeway") }
        check(generation >= machine.lastReset, "no token crosses a reset")
        check(refused?.token.value != token.value, "a refused token is not served")
    }

    mutating func checkInvariants() {
        let waiting = callers.indices.filter { if case .waiting = callers[$0] { true } else { false } }
        var queued: [Int] = []
        lobby.waiters.forEach { queued.append($0) }
        check(queued.sorted() == waiting && lobby.waiters.count == waiting.count, "no waiter is forgotten, none answered stays")
        if case .loading = machine.state {} else { check(waiting.isEmpty, "callers wait for a load only") }
        if let flight = machine.state.flight {
            let running = loads.map(\.id) + restores + saves
            check(running.contains(flight.id), "the current flight is under way")
            check(!machine.abandoned.contains { $0.id == flight.id }, "a flight is current or abandoned")
        }
        check(
            machine.abandoned.count + (machine.state.flight == nil ? 0 : 1) == loads.count + restores.count + saves.count,
            "every load is accounted for")
        check(lobby.snapshot.servable?.token == machine.state.servable?.token, "the snapshot shows the state's token")
        check(lobby.snapshot.generation == machine.generation, "and its generation")
    }
}
