import AccessTokens

/// The guarantees that can be checked from the outside; each check returns the first violation.
struct Rules {
    let facts: Facts
    let timeout = RefreshPolicy().loadTimeout
    /// Whether work takes no time, so that an immediate answer has the time of its call.
    let isPunctual: Bool

    var firstViolation: String? {
        for question in facts.questions {
            if let violation = violation(of: question) { return "\(question.caller): \(violation)" }
        }
        return loadsAtOnce ?? cancelledLoads ?? order
    }

    private func violation(of question: Facts.Question) -> String? {
        guard question.answers == 1, let ended = question.ended, let result = question.result else {
            return "guarantee 2: \(question.answers) answers"
        }
        if isPunctual, question.endedAt - question.beganAt > timeout { return "guarantee 9: waited longer than a load may take" }
        if isPunctual, let cancelledAt = question.cancelledAt, question.endedAt > cancelledAt {
            return "guarantee 7: left later than it was cancelled"
        }
        switch result {
        case .success(let token): return violation(by: token, to: question, ended)
        case .failure(let error as TokenServiceError): return violation(by: error, to: question, ended)
        case .failure(is CancellationError):
            return question.cancelledAt == nil ? "guarantee 7: ended as if cancelled" : nil
        case .failure(let error): return "an error that the service does not throw: \(error)"
        }
    }

    private func violation(by token: AccessToken, to question: Facts.Question, _ ended: Int) -> String? {
        let loads = facts.loads.filter { $0.token == token }
        let replacements = facts.fences.filter { $0.token == token }
        guard !loads.isEmpty || !replacements.isEmpty else { return "a token that was never issued" }
        // The token must have been issued before the answer.
        let births = loads.compactMap(\.ended) + replacements.map(\.began)
        guard births.contains(where: { $0 <= ended }) else { return "a token before it was issued" }
        for fence in facts.fences where fence.token != token && fence.span.isBefore(question.span) {
            let isOlder = loads.contains { $0.began < fence.began } || replacements.contains { $0.span.isBefore(fence.span) }
            if isOlder { return "guarantee 6: a token from before a fence" }
        }
        for invalidation in facts.invalidations where invalidation.token == token {
            // 49: it stays in use once five loads have followed refusals.
            let isLimited = facts.invalidations.count > RefreshPolicy.invalidationLimit
            if invalidation.span.isBefore(question.span), !isLimited { return "guarantee 5: a rejected token" }
        }
        if let load = loads.first, let lifetime = token.lifetime, let endedAt = load.endedAt {
            if load.beganAt + lifetime <= max(question.beganAt, endedAt) { return "guarantee 11: an expired token" }
        }
        return nil
    }

    private func violation(by error: TokenServiceError, to question: Facts.Question, _ ended: Int) -> String? {
        switch error.code {
        case .reset:
            let isCause = facts.fences.contains {
                $0.token == nil && $0.began < ended && $0.ended.map { $0 > question.began } ?? true
            }
            return isCause ? nil : "guarantee 6: a reset error without a reset"
        case .deadlineExceeded:
            guard let limit = question.limit else { return "guarantee 7: another caller's deadline" }
            let isDue = question.endedAt - question.beganAt >= limit
            let isOnTime = question.endedAt - question.beganAt == limit
            return isDue && (isOnTime || !isPunctual) ? nil : "guarantee 7: a deadline at the wrong time"
        case .loadTimedOut:
            let isCause = facts.loads.contains { isLate($0, at: question.endedAt) } || !isPunctual && question.endedAt >= timeout
            return isCause ? nil : "guarantee 9: a time-out without a late load"
        case .loadFailed:
            let isCause = facts.loads.contains { $0.hasFailed && ($0.ended ?? .max) < ended }
            return isCause ? nil : "guarantee 4: a failure without a failed load"
        case .tooManyInvalidations:
            return facts.invalidations.count >= 5 ? nil : "guarantee 5: too few invalidations to be too many"
        case .tokenExpiredOnArrival:
            let isCause = facts.loads.contains { load in
                guard let lifetime = load.token?.lifetime, let endedAt = load.endedAt else { return false }
                return endedAt - load.beganAt >= lifetime
            }
            return isCause || !isPunctual ? nil : "guarantee 4: no token expired on arrival"
        default: return "an error that cannot happen here: \(error)"
        }
    }

    /// Whether a load has run for too long; if time can pass at any step, it may have waited for any time before it ran.
    private func isLate(_ load: Facts.Load, at time: Duration, times: Int = 1) -> Bool {
        time - (isPunctual ? load.beganAt : .zero) >= timeout * times
    }

    /// Two loads at once must be separated by a fence or a time-out, and there are never more than three that neither a fence nor
    /// time has released (46).
    private var loadsAtOnce: String? {
        for (index, load) in facts.loads.enumerated() {
            let running = facts.loads[..<index].filter { $0.ended.map { $0 > load.began } ?? true }
            let unfenced = running.filter { older in
                !facts.fences.contains { $0.ended.map { $0 > older.began } ?? true && $0.began < load.began }
            }
            if unfenced.count(where: { !isLate($0, at: load.beganAt, times: RefreshPolicy.timeoutsUntilForgotten) }) > 2 {
                return "guarantee 1: four loads at once"
            }
            if unfenced.contains(where: { !isLate($0, at: load.beganAt) }) { return "guarantee 1: two loads at once" }
        }
        return nil
    }

    /// Only fences and limits end a load.
    private var cancelledLoads: String? {
        for load in facts.loads where load.wasCancelled {
            guard let ended = load.ended, let endedAt = load.endedAt else { continue }
            let isFenced = facts.fences.contains { $0.began < ended && $0.ended.map { $0 > load.began } ?? true }
            if !isFenced, !isLate(load, at: endedAt) { return "guarantee 8: a load was cancelled" }
        }
        return nil
    }

    /// Handlers are called in the order of the calls, except for calls whose limits have passed.
    private var order: String? {
        let inTurn = facts.questions.filter { question in
            question.isCallback && question.limit.map { question.endedAt - question.beganAt < $0 } ?? true
        }
        let answers = inTurn.sorted { $0.began < $1.began }.compactMap(\.ended)
        return answers == answers.sorted() ? nil : "guarantee 13: handlers out of order"
    }
}
