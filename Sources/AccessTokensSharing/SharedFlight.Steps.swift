import AccessTokens

/// The input and the output of a flight.
extension SharedFlight {
    /// The data with which a flight starts.
    struct Setting: Sendable, Hashable {
        /// Names this service in marks.
        var owner: String
        var plan = SharedFlightPlan()
        /// Names the service's process, for stores that know which processes are running.
        var holder: String?
        /// How long after `RefreshPolicy(loadTimeout:)` the transport may still be working.
        var transportLimit = Duration.seconds(30)
        /// How long a silent holder's mark is respected.
        var doubt = TokenSharing.Doubt.standard
        /// How long the server accepts a refresh token again after it has replaced it; `nil`: not at all, or unknown.
        var serverGrace: Duration?
        /// Whether the user asked to try again, so that the fleet's failures are ignored.
        var isRetry = false
        /// Marks of this service that are being taken back.
        var strays: [StrayMark] = []
        /// Lengthens the fleet's pauses, 0 ..< 1.
        var jitter = 0.0
    }

    /// The time on the service's own clock and, if it tells one, on the wall clock, in seconds since 2001.
    struct Moment: Sendable, Hashable {
        var now: Duration
        var wall: Double?
        /// Whether nothing waits for the flight any longer, because of a fence, its limit or a drain; then it must spend nothing.
        var isAbandoned = false
    }

    /// A record as it was read.
    struct Sighting: Sendable, Hashable {
        var record: GrantRecord
        var revision: SharedRecord.Revision
        /// Whether the process of its mark is running; `nil`: unknown.
        var isHolderRunning: Bool?
        /// How long ago this version of the record was written, at least; `nil` if the store can't tell.
        var age: Duration?
        /// Whether the age comes from a clock that can't be set.
        var isAgeSteady = false
    }

    enum Event: Sendable, Hashable {
        /// The record, or none, from a read or from a wait that has read it.
        case read(Sighting?)
        /// A read failed, or a swap whose outcome is unknown.
        case storeFailed(FlightFailure)
        case swapped(SharedRecord.Revision)
        case conflict(Sighting?)
        /// A wait is over: the record may have changed, or the time has passed.
        case waited
        case loaded(AccessToken)
        case failed(FlightFailure)
    }

    enum Step: Sendable, Hashable {
        case read
        case swap(GrantRecord, ifAt: SharedRecord.Revision?)
        /// Wait until the record changes, but no longer than this; `nil`: without a limit.
        case wait(from: SharedRecord.Revision?, atMost: Duration?)
        /// Wait until the store may have recovered.
        case pause(Duration)
        /// Present a refresh token, that of the marked record.
        case load(previous: AccessToken?)
        case end(Ending)
    }

    struct Ending: Sendable, Hashable {
        var outcome: FlightOutcome
        /// A token that this flight brought and that the record can't hold; to be revoked.
        var discarded: AccessToken?
        /// A mark that this flight has written, or whose write may still succeed, although its work is over.
        var stray: StrayMark?
    }
}

/// The meaning of a record for a flight; no function here changes anything.
extension SharedFlight {
    /// The action that a record requires.
    enum Verdict {
        case end(FlightOutcome)
        case adopt(AccessToken)
        /// Another service's mark is respected for this long, without a limit if `nil`; the record is to be read by then, or
        /// sooner.
        case wait(rest: Duration?, readIn: Duration?)
        /// Another service's refusal counts for all services.
        case heedRefusal
        /// This service's own request was refused.
        case report(FlightFailure)
        case mark
    }

    /// Decides by the first reason that applies; safety depends on the order of the reasons.
    ///
    /// - Parameters:
    ///   - record: The record to act on.
    ///   - sighting: The record as it was read.
    ///   - seen: The latest generation that the service had seen before.
    func verdict(on record: GrantRecord, in sighting: Sighting?, after seen: UInt64?, at moment: Moment) -> Verdict {
        let found = sighting?.record ?? .none
        if isLost(found), found.token?.refreshToken != nil || plan.previous?.refreshToken != nil,
            !plan.isRepeatable, !plan.isCheck
        {
            return .end(.failed(.lostInStore))
        }
        if let token = record.token, isNews(record), isGood(record, at: moment) { return .adopt(token) }
        if moment.isAbandoned { return .end(.gaveUp) }
        if plan.isCheck {
            let isNew = !knowledge.isNewer(than: found) && seen.map { $0 < found.generation } ?? true
            return .end(isNew || isFreed(record, at: moment) ? .newGrant : .gaveUp)
        }
        if let mark = record.mark, mark.owner != setting.owner, let wait = wait(for: mark, on: record, in: sighting, at: moment) {
            // No caller waits for a refresh.
            return plan.isRefresh ? .end(.gaveUp) : wait
        }
        if let refusal, refusal.generation == record.generation { return .report(refusal.failure) }
        return obstacle(record, at: moment) ?? .mark
    }

    /// Whether the store has lost its record, by a fault or by hand.
    private func isLost(_ found: GrantRecord) -> Bool {
        knowledge.isNewer(than: found) || found.isBlank && knowledge.generation ?? .max < found.generation
    }

    /// Returns the record to act on: the refresh token of a lost record is spent; the one in memory may be.
    func counted(_ found: GrantRecord, after seen: UInt64?, at moment: Moment) -> GrantRecord {
        var record = found
        record.generation = found.generation(after: seen, at: moment.wall)
        if isLost(found) { (record.token, record.signedOut) = (nil, max(found.signedOut, knowledge.signedOut ?? 0)) }
        return record
    }

    /// Whether the service hasn't had the record's token yet; one that it has had has expired by its own clock, whatever the wall
    /// clock says.
    private func isNews(_ record: GrantRecord) -> Bool { record.generation != knowledge.generation }

    /// Whether the record's token is inside its leeway.
    func isSpare(_ record: GrantRecord, at moment: Moment) -> Bool {
        isNews(record) && knowledge.refused != record.generation
            && isUsable(record, until: plan.policy.lastUse(forLifetime:), at: moment)
            && !isGood(record, at: moment)
    }

    func isGood(_ record: GrantRecord, at moment: Moment) -> Bool {
        isUsable(record, until: plan.policy.hardExpiry(forLifetime:), at: moment)
    }

    /// Whether a load can't spend anything twice: there is no refresh token, or the load may be repeated.
    func isHarmless(_ record: GrantRecord) -> Bool {
        plan.isRepeatable || record.token?.refreshToken == nil
    }

    private func isUsable(_ record: GrantRecord, until end: (_ lifetime: Duration) -> Duration, at moment: Moment) -> Bool {
        guard let token = record.token, !token.isUnusable, token.isBound(onlyTo: plan.keyThumbprint),
            !plan.refused.contains(token.value)
        else { return false }
        return token.lifetime.map { record.age(at: moment.wall) < end($0) } ?? true
    }

    /// Returns the fleet's pause after a failure of another service; this service's own failures are handled by `BackOff`.
    private func obstacle(_ record: GrantRecord, at moment: Moment) -> Verdict? {
        guard let trouble = record.trouble, trouble.owner != setting.owner, !setting.isRetry else { return nil }
        let rest = restOfPause(at: moment)
        guard rest > .zero else { return nil }
        if trouble.isRefused { return .heedRefusal }
        return .end(plan.isRefresh ? .gaveUp : .failed(.elsewhere(.failed, retryAfter: plan.hasToken ? nil : rest)))
    }

    /// Whether the fleet's refusal, already reported to callers, has expired, so that this service may ask the server itself.
    private func isFreed(_ record: GrantRecord, at moment: Moment) -> Bool {
        knowledge.refusedElsewhere == record.generation && restOfPause(at: moment) <= .zero
    }

    /// The rest of the pause after the fleet's last failures, counted on the service's own clock from when it first saw them.
    private func restOfPause(at moment: Moment) -> Duration { knowledge.pauseEnd - moment.now }

    func isInGrace(since began: Duration, at moment: Moment) -> Bool {
        setting.serverGrace.map { moment.now < began + $0 } ?? false
    }
}

// MARK: How long a mark is respected

extension SharedFlight {
    /// How long a silent holder is waited for if a grace period is stated, in which the server accepts a refresh token once more
    /// after it has replaced it: a tenth of the period, or a second, is left for the request.
    ///
    /// It is also the longest limit of a mark. So the request of a holder that is merely slow has arrived, and its token is saved,
    /// before another process may present the old one.
    ///
    /// | period | a silent holder is waited for, and its request arrives within |
    /// |---|---|
    /// | 10 s | 9 s |
    /// | 30 s | 27 s |
    /// | 60 s | 54 s |
    ///
    /// - Parameter period: If it is shorter than ten seconds, it leaves no time for a late save, and changes no limit.
    static func wait(within period: Duration?) -> Duration? {
        guard let period, period >= lateSaveTime + .seconds(1) else { return nil }
        return period - max(.seconds(1), period / 10)
    }

    /// The longest pause between two attempts to save a token.
    static let longestSavePause = Duration.seconds(3)

    /// The time within which a process that has a token to save tries again, once the store responds; 9 s.
    ///
    /// Its last attempt may still wait for the store when that recovers, then comes the pause, and a second for the next attempt.
    static let lateSaveTime = RefreshPolicy.storeTimeout + longestSavePause + .seconds(1)

    /// How long an exchange may take, from the moment when its mark was written.
    ///
    /// - Parameter record: The record that is marked.
    func limit(over record: GrantRecord) -> Duration {
        let limit = plan.policy.loadTimeout + setting.transportLimit
        // Others know when a process with a holder's name dies; as long as it runs, they wait for the doubt.
        guard setting.holder == nil, !isHarmless(record), let wait = Self.wait(within: setting.serverGrace) else { return limit }
        return min(limit, wait)
    }

    /// How long after its mark a service may send its request; if the limit was cut, at least half of it is for sending.
    func sendingLimit(within limit: Duration?) -> Duration {
        let limit = limit ?? .zero
        return min(plan.policy.loadTimeout, max(limit - setting.transportLimit, limit / 2))
    }

    /// How long a silent service's mark is respected, counted from its writing; `nil`: without a limit.
    private func patience(with mark: GrantRecord.Mark, on record: GrantRecord, isRunning: Bool?) -> Duration? {
        let doubt = setting.doubt.patience(with: mark)
        if isHarmless(record) {
            // As long as a load usually takes, and some more: the next one costs a request. Ten seconds without experience.
            let usual = (knowledge.loadTime ?? .seconds(4)) * 2 + .seconds(2)
            return min(doubt ?? usual, usual)
        }
        // A holder that is known to be running has not died, so a grace period is no reason to hurry.
        guard let doubt, isRunning == nil, let wait = Self.wait(within: setting.serverGrace) else { return doubt }
        // A mark without a cut limit: the holder's request must arrive within the period that this service's request begins.
        return min(doubt, max(wait, mark.limit - wait))
    }

    /// Returns how long to wait for another service's mark; `nil` if its time is over.
    ///
    /// The request of a dead process may still be under way. If the server is still to receive it, its response is lost, so that no
    /// wait can save the session. If the server never receives it, the token is good at once.
    private func wait(
        for mark: GrantRecord.Mark, on record: GrantRecord, in sighting: Sighting?, at moment: Moment
    ) -> Verdict? {
        let isRunning = sighting?.isHolderRunning
        if isRunning == false { return nil }
        // The record doesn't change when the holder dies.
        let look = isRunning == true ? RefreshPolicy.checkPause : nil
        guard let patience = patience(with: mark, on: record, isRunning: isRunning), let sight = knowledge.sight else {
            return .wait(rest: nil, readIn: look)
        }
        var rest = sight.since + patience - moment.now, next = rest
        if !isHarmless(record) {
            // A holder that was cut off from the store, as this service may have been, may have a new token to save.
            if let watched = sight.watched {
                rest = max(rest, watched + Self.lateSaveTime - moment.now)
                next = rest
            } else {
                next -= Self.lateSaveTime
            }
        }
        return rest > .zero ? .wait(rest: rest, readIn: look.map { min($0, next) } ?? next) : nil
    }

    /// Whether the time of another service's mark is over but for a late save, so that the store is to be watched until then.
    func isNearlyOver(_ record: GrantRecord, in sighting: Sighting?, at moment: Moment) -> Bool {
        guard let mark = record.mark, mark.owner != setting.owner, !isHarmless(record), let sight = knowledge.sight,
            let patience = patience(with: mark, on: record, isRunning: sighting?.isHolderRunning)
        else { return false }
        return moment.now >= sight.since + patience - Self.lateSaveTime
    }
}

/// The failures of a flight that don't come from its loader.
extension FlightFailure {
    /// The flight got an event that it was not waiting for.
    static let outOfTurn = Self(error: TokenServiceError(.loadFailed))

    /// The record is older than one that the service has seen, or gone.
    fileprivate static let lostInStore = Self(
        error: TokenServiceError(.storeFailed, underlying: RecordLost(), remedy: .signIn))

    /// The server refused the grant when another service presented it.
    static let refusedElsewhere = Self(
        error: TokenServiceError(.loadFailed, underlying: FailedElsewhere.refused, remedy: .signIn))

    /// Another service has failed or is still loading, and this service must wait.
    static func elsewhere(_ reason: FailedElsewhere, retryAfter: Duration? = nil) -> Self {
        Self(error: TokenServiceError(.loadFailed, underlying: reason), retryAfter: retryAfter)
    }

    /// The shared store failed.
    static func store(_ error: any Error) -> Self { Self(error: TokenServiceError(.storeFailed, underlying: error)) }

    /// Whether the record itself can't be read or written, so that trying again is useless.
    ///
    /// A failed `seal` or `open` isn't permanent: a key may be locked for a while.
    var isPermanent: Bool { error.underlying is GrantRecordError }
}

/// The program's own `seal` or `open` failed.
struct SealFailure: Error, CustomStringConvertible {
    let underlying: any Error
    let description = "The shared store's record could not be sealed or opened. It was left unchanged: check the key."
}

/// The store has lost a record that it had acknowledged.
private struct RecordLost: Error, CustomStringConvertible {
    let description =
        "The shared store's record was removed, or replaced by an older one, so its refresh token may be used up. Sign in again."
}

/// Each of a thousand consecutive swaps found a record other than the one before.
struct StoreContention: Error, CustomStringConvertible {
    let description =
        "The shared store's record changed before each of a thousand attempts to replace it. Check which programs write it."
}

/// A swap reported a conflict although the record has the expected revision; retrying at once might never end.
struct StoreContradiction: Error, CustomStringConvertible {
    let description = "The shared store refused a swap at the current revision. Check its swap(_:ifAt:)."
}

/// Another service that shares the grant keeps this one from loading.
enum FailedElsewhere: Error, Hashable, CustomStringConvertible {
    case refused, failed
    /// Another service's mark is respected for longer than callers wait; `nil`: without a limit.
    case busy(rest: Duration?)

    var description: String {
        switch self {
        case .refused: "The authorization server refused the shared grant when another process presented it."
        case .failed:
            "Another process that shares the grant failed to load a token, and no process tries again until the pause is over."
        case .busy(let rest?):
            "Another process that shares the grant began to load a token, and has reported neither success nor failure. This process "
                + "waits for it for \(rest.components.seconds + 1) s more at most, longer than its callers do: ask again, or raise "
                + "RefreshPolicy(loadTimeout:) above that."
        case .busy(nil):
            "Another process that shares the grant began to load a token, and has reported neither success nor failure. With "
                + "TokenSharing.Doubt.never this process waits until it does, or until a user signs in."
        }
    }
}
