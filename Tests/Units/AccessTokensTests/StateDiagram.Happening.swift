@testable import AccessTokens

extension StateDiagram {
    /// The events of a machine, in the terms of the documents.
    enum Happening: String, CaseIterable, Comparable {
        case caller = "a caller"
        case earlierCaller = "a caller from before a reset"
        case claim = "a caller in the soft window"
        case departure = "a caller leaves"
        case success = "success"
        case uselessToken = "a useless token"
        case failure = "failure"
        case timeOut = "time-out"
        case forgotten = "a long silence"
        case lateSuccess = "late success"
        case lateUselessToken = "late useless token"
        case lateFailure = "late failure"
        case overtaken = "an overtaken load ends"
        case expiry = "the token expires"
        case refusal = "the token is refused"
        case lateRefusal = "an older token is refused"
        case replacement = "replace"
        case expiredReplacement = "replace, expired token"
        case reset = "reset"
        case retry = "retryNow"
        case restored = "the store has a token"
        case knownStored = "the store has the known token"
        case nothingStored = "the store is empty"
        case storeFailure = "the store fails"
        case storeTimeOut = "the store is silent"
        case lateRestore = "the store answers late"
        case saved = "the save ends"
        case lateSave = "a late save ends"

        static func < (left: Happening, right: Happening) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }

        /// The meaning of the term, if it isn't obvious.
        var meaning: String? {
            switch self {
            case .uselessToken: "refused before, expired on arrival, or inside its leeway"
            case .lateSuccess: "of a load given up after its limit, with nothing published since"
            case .forgotten: "four times the limit after the start of a load that has not ended"
            case .overtaken: "a token was published, or a fence raised, since it was given up"
            case .expiredReplacement: "a lifetime of zero: a grant only"
            case .earlierCaller: "it saw the generation before the reset, and reaches the actor after it"
            default: nil
            }
        }

        /// A fence is possible in every place, so its arrows would hide the others.
        var isFence: Bool { [.replacement, .expiredReplacement, .reset].contains(self) }
    }
}

extension World {
    /// Returns the name of an event, if it reaches the machine; time has its own names.
    func happening(_ event: Event) -> StateDiagram.Happening? {
        switch event {
        case .tick, .call, .join: nil
        case .arrive(let index):
            if case .called(let seen) = callers[index], seen < machine.session.lastReset {
                .earlierCaller
            } else {
                isDue ? .claim : .caller
            }
        case .leave: .departure
        case .succeed(let id) where !isTooLate(id): load(id, .success, late: .lateSuccess)
        case .succeed(let id), .succeedExpired(let id), .succeedBarely(let id), .succeedWithRejected(let id):
            load(id, .uselessToken, late: .lateUselessToken)
        case .fail(let id), .failWithRetryAfter(let id), .failForGood(let id): load(id, .failure, late: .lateFailure)
        case .refreshAhead: isDue ? .claim : nil
        case .invalidateCurrent: machine.state.cached == nil ? nil : .refusal
        case .invalidateOlder: .lateRefusal
        case .replace: .replacement
        case .replaceExpired: .expiredReplacement
        case .reset: .reset
        case .retryNow: .retry
        case .drain, .resume, .ask, .lostEnds, .lostFails, .act, .actMeanwhile, .arriveDemanding, .arriveInsisting: nil
        case .failSalvaging(let id): load(id, .failure, late: .lateFailure)
        case .storeFinds: store(.restored)
        case .storeFindsOwn: store(.knownStored)
        case .storeEnds: store(.nothingStored)
        case .storeFails: store(.storeFailure)
        }
    }

    /// Returns what the end of the store's operation means for the flight that continues after it, if any.
    private func store(_ answer: StateDiagram.Happening) -> StateDiagram.Happening? {
        guard let operation = running, let flight = operation.flight else { return nil }
        switch operation.kind {
        case .load: return load(flight, answer, late: .lateRestore)
        case .save: return load(flight, .saved, late: .lateSave)
        case .remove: return nil
        }
    }

    private var isDue: Bool {
        guard case .fresh(let cached) = machine.state, let due = cached.refreshFrom else { return false }
        return due <= now
    }

    /// Whether a token that a load brings now would be inside its leeway.
    private func isTooLate(_ id: Int) -> Bool {
        loads.contains { $0.id == id && $0.start + Self.lifetime - Self.lifetime / 10 <= now }
    }

    private func load(
        _ id: Int, _ current: StateDiagram.Happening, late: StateDiagram.Happening
    ) -> StateDiagram.Happening {
        if machine.state.flight?.id == id { return current }
        let isOvertaken = !machine.abandoned.contains { $0.id == id && $0.publications == machine.publications }
        return isOvertaken ? .overtaken : late
    }
}
