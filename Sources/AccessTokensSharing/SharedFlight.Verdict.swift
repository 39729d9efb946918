import AccessTokens

/// The meaning of a record for a flight; no function here changes anything.
extension SharedFlight {
    /// What to do about a record.
    enum Verdict {
        case end(Ending.Outcome)
        case adopt(AccessToken)
        case wait(atMost: Duration?, FailedElsewhere)
        /// Another service prevents this one from loading.
        case giveWay(FailedElsewhere, retryAfter: Duration?)
        /// The refusal of another service counts for all.
        case heedRefusal
        /// This service's own request was refused.
        case report(Failure)
        case mark(isTakenOver: Bool)
    }

    /// Decides by the first of these reasons; their order is what makes it safe.
    ///
    /// - Parameters:
    ///   - record: The record as it counts.
    ///   - sighting: The record as it was read.
    ///   - seen: The latest generation that the service had seen before.
    func verdict(on record: GrantRecord, in sighting: Sighting?, after seen: UInt64?, at moment: Moment) -> Verdict {
        let found = sighting?.record ?? .none
        if isLost(found), found.token?.refreshToken != nil || setting.memory?.refreshToken != nil,
            !setting.isRepeatable, !setting.isLook
        {
            return .end(.failed(.lostInStore))
        }
        if let token = record.token, isNews(record), isGood(record, at: moment) { return .adopt(token) }
        if moment.isAbandoned { return .end(.failed(.abandoned)) }
        if setting.isLook {
            let isNew = !knowledge.isNewer(than: found) && seen.map { $0 < found.generation } ?? true
            return .end(isNew || isFreed(record, at: moment) ? .newGrant : .gaveUp)
        }
        if let rest = restOfUnanswered(record, at: moment) { return .wait(atMost: rest, .unanswered) }
        var isTakenOver = false
        if let mark = record.mark, mark.owner != setting.owner {
            let hasEnded = sighting?.isHolderRunning == false
            let isRepeatable = isHarmless(record) || setting.serverGrace != nil
            let patience = hasEnded ? isRepeatable ? .zero : mark.limit : setting.doubt.patience(with: mark)
            let rest = patience.map { knowledge.since + $0 - moment.now }
            if rest.map({ $0 > .zero }) ?? true {
                // The record doesn't change if the holder dies.
                let look = setting.serverGrace != nil && sighting?.isHolderRunning == true ? RefreshPolicy.lookPause : nil
                return .wait(atMost: [rest, look].compactMap { $0 }.min(), hasEnded ? .ended : .busy)
            }
            isTakenOver = !hasEnded && !isHarmless(record)
            if isTakenOver, let deadline = setting.deadline, deadline - moment.now <= lateSaveTime {
                return .giveWay(.busy, retryAfter: nil)
            }
        }
        if let refusal, refusal.generation == record.generation { return .report(refusal.failure) }
        return obstacle(record, at: moment) ?? .mark(isTakenOver: isTakenOver)
    }

    /// Whether the store has lost its record, by a fault or by hand.
    private func isLost(_ found: GrantRecord) -> Bool {
        knowledge.isNewer(than: found) || found.isBlank && knowledge.generation ?? .max < found.generation
    }

    /// The record to act on: the refresh token of a lost one is spent; the one in memory may be.
    func counted(_ found: GrantRecord, after seen: UInt64?, at moment: Moment) -> GrantRecord {
        var record = found
        record.generation = found.generation(after: seen, at: moment.wall)
        if isLost(found) { (record.token, record.signedOut) = (nil, max(found.signedOut, knowledge.signedOut ?? 0)) }
        return record
    }

    /// Whether the record isn't this service's, whose own token has expired by its own clock, whatever the wall clock says.
    private func isNews(_ record: GrantRecord) -> Bool { record.generation != knowledge.generation }

    /// Whether the record's token is inside its leeway.
    func isSpare(_ record: GrantRecord, at moment: Moment) -> Bool {
        isNews(record) && knowledge.refused != record.generation
            && isUsable(record, until: setting.policy.lastUse(forLifetime:), at: moment)
            && !isGood(record, at: moment)
    }

    private func isGood(_ record: GrantRecord, at moment: Moment) -> Bool {
        isUsable(record, until: setting.policy.hardExpiry(forLifetime:), at: moment)
    }

    /// Whether a load can spend nothing twice: there is no refresh token, or the load may be repeated.
    func isHarmless(_ record: GrantRecord) -> Bool {
        setting.isRepeatable || record.token?.refreshToken == nil
    }

    private func isUsable(_ record: GrantRecord, until end: (_ lifetime: Duration) -> Duration, at moment: Moment) -> Bool {
        guard let token = record.token, !token.isUnusable, token.isBound(onlyTo: setting.keyThumbprint),
            !setting.refused.contains(token.value)
        else { return false }
        return token.lifetime.map { record.age(at: moment.wall) < end($0) } ?? true
    }

    /// The fleet's pause after a failure of another service; this service's own failures are handled by `BackOff`.
    private func obstacle(_ record: GrantRecord, at moment: Moment) -> Verdict? {
        guard let trouble = record.trouble, trouble.owner != setting.owner, !setting.isRetry else { return nil }
        let rest = record.pause(at: moment.wall)
        guard rest > .zero else { return nil }
        return trouble.isRefused ? .heedRefusal : .giveWay(.failed, retryAfter: rest)
    }

    /// Whether the fleet's refusal, which this service has reported to its callers, has expired, so that the service may ask
    /// itself.
    private func isFreed(_ record: GrantRecord, at moment: Moment) -> Bool {
        knowledge.refusedElsewhere == record.generation && record.pause(at: moment.wall) == .zero
    }

    /// How long this service's last request may still be under way; `nil`: it isn't, or the server tolerates a second one.
    private func restOfUnanswered(_ record: GrantRecord, at moment: Moment) -> Duration? {
        guard let last = knowledge.unanswered, last.generation == record.generation, last.end > moment.now, !isHarmless(record)
        else { return nil }
        return isInGrace(since: last.began, at: moment) ? nil : last.end - moment.now
    }

    func isInGrace(since began: Duration, at moment: Moment) -> Bool {
        setting.serverGrace.map { moment.now < began + $0 } ?? false
    }
}
