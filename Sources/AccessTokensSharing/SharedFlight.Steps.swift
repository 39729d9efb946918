import AccessTokens

/// The input and the output of a flight.
extension SharedFlight {
    /// The data with which a flight starts.
    struct Setting: Sendable, Hashable {
        /// Names this service in marks.
        var owner: String
        /// Names the flight among those of the service, so that each write has its own name.
        var flight = 0
        /// Names the service's process, for stores that know which processes are running.
        var holder: String?
        var policy = RefreshPolicy()
        /// How long after `RefreshPolicy(loadTimeout:)` the transport may still be working.
        var transportLimit = Duration.seconds(30)
        /// How long a silent holder's mark is respected.
        var doubt = TokenSharing.Doubt.standard
        /// How long the server accepts a refresh token again after it has replaced it; `nil`: not at all, or unknown.
        var serverGrace: Duration?
        var isRepeatable = false
        /// When the callers' wait ends; `nil`: never.
        var deadline: Duration?
        /// Whether callers keep getting the current token, so that none of them waits.
        var isRefresh = false
        /// Whether the user asked to try again, so that the fleet's failures are ignored.
        var isRetry = false
        /// Whether the flight only reads what other services have written, and writes and loads nothing, since the service is
        /// backing off or its token is good.
        var isLook = false
        /// The token that a repeatable load presents if the store can't be read.
        var memory: AccessToken?
        /// Marks of this service that are being taken back.
        var strays: [StrayMark] = []
        /// The key that the loader's tokens are bound to.
        var keyThumbprint: String?
        /// Tokens that resource servers refused.
        var refused: [String] = []
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
    }

    enum Event: Sendable, Hashable {
        /// The record, or none, from a read or from a wait that has read it.
        case read(Sighting?)
        /// A read failed, or a swap whose outcome is unknown.
        case storeFailed(Failure)
        case swapped(SharedRecord.Revision)
        case conflict(Sighting?)
        /// A wait is over: the record may have changed, or the time has passed.
        case waited
        case loaded(AccessToken)
        case failed(Failure)
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
        enum Outcome: Sendable, Hashable {
            /// A token, and how long ago its load began.
            case token(AccessToken, age: Duration, isAdopted: Bool)
            case failed(Failure)
            /// Another service is loading, and no caller waits here; or a check found nothing new.
            case gaveUp
            /// A check found a grant newer than any that the service has tried.
            case newGrant
            /// Another service has signed out; a session is over if this service knew of one.
            case signedOut(isOfSession: Bool)
        }

        var outcome: Outcome
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
        case end(Ending.Outcome)
        case adopt(AccessToken)
        case wait(atMost: Duration?, FailedElsewhere)
        /// Another service prevents this one from loading.
        case giveWay(FailedElsewhere, retryAfter: Duration?)
        /// Another service's refusal counts for all services.
        case heedRefusal
        /// This service's own request was refused.
        case report(Failure)
        case mark(isTakenOver: Bool)
    }

    /// Decides by the first reason that applies; safety depends on the order of the reasons.
    ///
    /// - Parameters:
    ///   - record: The record to act on.
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
                // Poll, because the record doesn't change when the holder dies.
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
            && isUsable(record, until: setting.policy.lastUse(forLifetime:), at: moment)
            && !isGood(record, at: moment)
    }

    func isGood(_ record: GrantRecord, at moment: Moment) -> Bool {
        isUsable(record, until: setting.policy.hardExpiry(forLifetime:), at: moment)
    }

    /// Whether a load can't spend anything twice: there is no refresh token, or the load may be repeated.
    func isHarmless(_ record: GrantRecord) -> Bool {
        setting.isRepeatable || record.token?.refreshToken == nil
    }

    private func isUsable(_ record: GrantRecord, until end: (_ lifetime: Duration) -> Duration, at moment: Moment) -> Bool {
        guard let token = record.token, !token.isUnusable, token.isBound(onlyTo: setting.keyThumbprint),
            !setting.refused.contains(token.value)
        else { return false }
        return token.lifetime.map { record.age(at: moment.wall) < end($0) } ?? true
    }

    /// Returns the fleet's pause after a failure of another service; this service's own failures are handled by `BackOff`.
    private func obstacle(_ record: GrantRecord, at moment: Moment) -> Verdict? {
        guard let trouble = record.trouble, trouble.owner != setting.owner, !setting.isRetry else { return nil }
        let rest = record.pause(at: moment.wall)
        guard rest > .zero else { return nil }
        return trouble.isRefused ? .heedRefusal : .giveWay(.failed, retryAfter: rest)
    }

    /// Whether the fleet's refusal, already reported to callers, has expired, so that this service may ask the server itself.
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

extension SharedFlight {
    /// Why a load failed.
    struct Failure: Sendable, Hashable {
        @CodeAndRemedy var error: TokenServiceError
        var retryAfter: Duration?
        /// A new grant that came with the failure.
        var salvaged: AccessToken?
        /// Whether the server's answer is known, or the refresh token was certainly not spent.
        var isDefinite: Bool
        /// Whether the record itself can't be read or written, so that trying again is useless.
        var isPermanent = false
        /// Whether the load was given up before anything was sent, so that it isn't a failure of the server.
        var isUnsent = false
    }

    /// An error compared by its code and remedy; its cause can't be compared.
    @propertyWrapper struct CodeAndRemedy: Sendable, Hashable {
        var wrappedValue: TokenServiceError

        static func == (a: Self, b: Self) -> Bool {
            (a.wrappedValue.code, a.wrappedValue.remedy) == (b.wrappedValue.code, b.wrappedValue.remedy)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(wrappedValue.code)
            hasher.combine(wrappedValue.remedy)
        }
    }
}

/// The failures of a flight that don't come from its loader.
extension SharedFlight.Failure {
    /// Nothing waits for the flight any longer, and it has spent nothing.
    static let abandoned = Self(error: TokenServiceError(.loadTimedOut), isDefinite: true)

    /// The flight got an event that it was not waiting for.
    static let outOfTurn = Self(error: TokenServiceError(.loadFailed), isDefinite: true)

    /// The record is older than one that the service has seen, or gone.
    fileprivate static let lostInStore = Self(
        error: TokenServiceError(.storeFailed, underlying: RecordLost(), remedy: .signIn), isDefinite: true)

    /// The server refused the grant when another service presented it.
    static let refusedElsewhere = Self(
        error: TokenServiceError(.loadFailed, underlying: FailedElsewhere.refused, remedy: .signIn), isDefinite: true)

    /// Another service has failed, has ended or is still loading, and this service must wait.
    static func elsewhere(_ reason: FailedElsewhere, retryAfter: Duration?) -> Self {
        Self(error: TokenServiceError(.loadFailed, underlying: reason), retryAfter: retryAfter, isDefinite: true)
    }

    /// The shared store failed.
    static func store(_ error: any Error) -> Self {
        // A failed `seal` or `open` isn't permanent: a key may be locked for a while.
        let isPermanent = error is GrantRecordError
        return Self(error: TokenServiceError(.storeFailed, underlying: error), isDefinite: true, isPermanent: isPermanent)
    }
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
enum FailedElsewhere: Error, CustomStringConvertible {
    case refused, failed, ended, busy
    /// This service's own last request has no answer, so no other service is involved.
    case unanswered

    var description: String {
        switch self {
        case .refused: "The authorization server refused the shared grant when another process presented it."
        case .failed:
            "Another process that shares the grant failed to load a token, and no process tries again until the pause is over."
        case .ended:
            "A process that shares the grant died while it loaded a token. Its request may still be under way, so no "
                + "process asks again until the request must have arrived."
        case .unanswered:
            "This process's last request for a token got no answer. It may still be under way, so no process asks again "
                + "until the request must have arrived."
        case .busy:
            "Another process that shares the grant began to load a token, but reported neither success nor failure in the time that "
                + "a load may take."
        }
    }
}
