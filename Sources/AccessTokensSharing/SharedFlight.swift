import AccessTokens

/// One flight of a service that shares its grant: the protocol *read → adopt | wait | mark → load → save*, as a pure value.
///
/// It takes an event and returns the next step; ``SharedSession`` performs the steps one after another. No lock is held over the
/// network, and no two clocks are compared. One rule makes it safe: a refresh token is presented only after this service's mark
/// is in the record that holds the token, and the server's response replaces that record and no other. Only this file writes the
/// flight's state.
struct SharedFlight: Sendable, Hashable {
    /// A record that is being written to the store, and its purpose.
    private struct Write: Sendable, Hashable {
        enum Purpose: Sendable, Hashable {
            case mark(isTakeOver: Bool)
            case token(AccessToken, began: Duration, FlightFailure?)
            case failure(FlightFailure)
        }

        var record: GrantRecord
        let revision: SharedRecord.Revision?
        let began: Duration
        let purpose: Purpose
        var attempts = 0
    }

    struct Refusal: Sendable, Hashable { let generation: UInt64, failure: FlightFailure }

    private enum Phase: Sendable, Hashable {
        case reading
        /// A swap failed; the next read shows whether its record is in the store.
        case settling(Write, FlightFailure)
        case writing(Write)
        case waiting
        /// The refresh token of the marked record is being presented; `nil`: a repeatable load without the store.
        case loading(GrantRecord?, SharedRecord.Revision?, began: Duration)
        case ended
    }

    let setting: Setting
    var plan: SharedFlightPlan { setting.plan }
    private(set) var knowledge: Knowledge
    private var phase = Phase.reading
    /// The mark that must be withdrawn if the flight ends now.
    private var stray: StrayMark?
    /// The record, if its token is inside its leeway and the service doesn't have that token.
    private var reserve: GrantRecord?
    /// The server refused the token of this generation; it must not be presented again.
    private(set) var refusal: Refusal?
    /// When the load that is under way may send its request at the latest; `nil`: the callers' wait is the only limit.
    private(set) var sendingEnd: Duration?

    init(_ setting: Setting, knowing knowledge: Knowledge = Knowledge()) {
        self.setting = setting
        self.knowledge = knowledge
    }

    /// Returns the first step: if possible, to mark the record that was read last without reading again; otherwise to read.
    ///
    /// If the record has another revision by now, the swap returns the record, as a read would.
    mutating func begin(at moment: Moment) -> Step {
        guard let record = knowledge.unmarked, let sight = knowledge.sight, let revision = sight.revision, !plan.isCheck else {
            return .read
        }
        var marking = self
        guard case .swap(let marked, _) = marking.judge(Sighting(record: record, revision: revision), at: moment) else {
            return .read
        }
        self = marking
        // The store was not read.
        knowledge.sight = sight
        return .swap(marked, ifAt: revision)
    }

    /// Takes the outcome of the last step and returns the next one.
    mutating func next(_ event: Event, at moment: Moment) -> Step {
        if case .storeFailed = event {
            knowledge.sight?.watched = nil
            if case .writing = phase { knowledge.hasFailedToWrite = true }
        }
        switch (phase, event) {
        case (.reading, .read(let sighting)): return judge(sighting, at: moment)
        case (.reading, .storeFailed(let failure)): return goOnWithoutStore(failure, at: moment)
        case (.waiting, .read(let sighting)):
            phase = .reading
            return judge(sighting, at: moment)
        case (.waiting, _):
            phase = .reading
            return .read
        case (.writing(let write), .swapped(let revision)): return landed(write, at: revision, moment)
        case (.writing(let write), .conflict(let sighting)): return meets(write, sighting, nil, at: moment)
        case (.writing(let write), .storeFailed(let failure)):
            if write.attempts > 0 { return settleLater(write, failure, at: moment) }
            phase = .settling(write, failure)
            return .read
        case (.settling(let write, let failure), .read(let sighting)):
            return meets(write, sighting, failure, at: moment)
        case (.settling(let write, _), .storeFailed(let failure)):
            return settleLater(write, failure, at: moment)
        case (.settling, .waited): return .read
        case (.loading(let spent, let revision, let began), .loaded(let token)):
            knowledge.loadTime = moment.now - began
            return save(token, nil, over: spent, at: revision, began: began, moment)
        case (.loading, .failed(let failure)) where failure.isUnsent: return end(.failed(failure))
        case (.loading(let spent, let revision, let began), .failed(let failure)):
            if let salvaged = failure.salvaged {
                return save(salvaged, failure, over: spent, at: revision, began: began, moment)
            }
            if asksAgain(after: failure, over: spent, began: began, at: moment) {
                phase = .reading
                return .read
            }
            return note(failure, over: spent, at: revision, moment)
        default: return end(.failed(.outOfTurn))
        }
    }

    private mutating func end(_ outcome: FlightOutcome, discarding token: AccessToken? = nil) -> Step {
        phase = .ended
        return .end(Ending(outcome: outcome, discarded: token, stray: stray))
    }

    /// Ends the flight with what its load has brought: a token or, if only a grant came, the failure.
    private mutating func handOut(
        _ token: AccessToken, _ failure: FlightFailure?, since began: Duration, at moment: Moment
    ) -> Step {
        end(failure.map { .failed($0) } ?? .token(token, age: moment.now - began, isAdopted: false))
    }

    // MARK: Reading

    /// Handles a record that was read: adopts its token, waits for its mark's holder, or marks it.
    private mutating func judge(_ sighting: Sighting?, at moment: Moment) -> Step {
        let (seen, session, found) = (knowledge.seen, knowledge.session, sighting?.record ?? .none)
        see(sighting, at: moment)
        if knowledge.learnSession(of: found) { return end(.signedOut(isOfSession: session != nil)) }
        let record = counted(found, after: seen, at: moment)
        let watched = isNearlyOver(record, in: sighting, at: moment) ? knowledge.sight?.watched ?? moment.now : nil
        knowledge.sight?.watched = watched
        reserve = isSpare(record, at: moment) ? record : nil
        switch verdict(on: record, in: sighting, after: seen, at: moment) {
        case .end(let outcome): return end(outcome)
        case .adopt(let token):
            knowledge.generation = record.generation
            return end(.token(token, age: record.age(at: moment.wall), isAdopted: true))
        case .wait(let rest, let next): return wait(rest, readIn: next, from: sighting?.revision, at: moment)
        case .heedRefusal:
            (knowledge.refusedElsewhere, knowledge.refused) = (record.generation, record.generation)
            return end(.failed(.refusedElsewhere))
        case .report(let failure): return note(failure, over: record, at: sighting?.revision, moment)
        case .mark: return mark(record, at: sighting?.revision, moment)
        }
    }

    /// Waits for another service's mark, but not quite as long as the callers do, so that they get the reason as their error.
    private mutating func wait(
        _ rest: Duration?, readIn next: Duration?, from revision: SharedRecord.Revision?, at moment: Moment
    ) -> Step {
        phase = .waiting
        guard let deadline = plan.deadline else { return .wait(from: revision, atMost: next) }
        let left = deadline - moment.now - min(.seconds(1), plan.policy.loadTimeout / 10)
        guard left > .zero else { return end(.failed(.elsewhere(.busy(rest: rest)))) }
        return .wait(from: revision, atMost: min(next ?? left, left))
    }

    private mutating func see(_ sighting: Sighting?, at moment: Moment) {
        if stray?.remedy(for: sighting) == nil { stray = nil }
        knowledge.see(sighting, at: moment)
    }

    /// Returns, once, the record whose token the service may hand out if this flight fails for a transient reason.
    mutating func takeReserve() -> GrantRecord? {
        defer { reserve = nil }
        return reserve
    }

    /// Continues when the store can't be read or written: a token that can't be saved must not be spent.
    private mutating func goOnWithoutStore(_ failure: FlightFailure, at moment: Moment) -> Step {
        if plan.isCheck { return end(.gaveUp) }
        guard plan.isRepeatable, !moment.isAbandoned else { return end(.failed(failure)) }
        phase = .loading(nil, nil, began: moment.now)
        return .load(previous: plan.previous)
    }

    // MARK: Writing

    private mutating func mark(_ record: GrantRecord, at revision: SharedRecord.Revision?, _ moment: Moment) -> Step {
        var marked = record
        knowledge.refusedElsewhere = nil
        marked.mark = GrantRecord.Mark(owner: setting.owner, holder: setting.holder, limit: limit(over: record))
        // Withdrawing a stray mark restores the record without that mark.
        var before = ([stray].compactMap { $0 } + setting.strays).first { $0.write == record.write }?.record ?? record
        // Nor does it restore another service's mark, whose time is over unless a late save may still come, nor the mark of an earlier
        // load of this service that still runs, which may end at any time, if it spends nothing.
        let mayComeLate = knowledge.hasFailedToWrite || moment.now < knowledge.lateSaveEnd
        if isHarmless(record) || before.mark?.owner != setting.owner && !mayComeLate { before.mark = nil }
        let isTakeOver = knowledge.sight?.watched != nil
        let step = write(marked, over: revision, .mark(isTakeOver: isTakeOver), moment)
        if case .swap(let marked, _) = step {
            stray = StrayMark(write: marked.write, base: revision, restoring: before)
        }
        return step
    }

    private mutating func save(
        _ token: AccessToken, _ failure: FlightFailure?, over spent: GrantRecord?, at revision: SharedRecord.Revision?,
        began: Duration, _ moment: Moment
    ) -> Step {
        guard let spent else { return handOut(token, failure, since: began, at: moment) }
        let received = moment.wall.map { $0 - (moment.now - began) / .seconds(1) } ?? -.greatestFiniteMagnitude
        var next = GrantRecord(write: "", generation: spent.generation + 1, token: token, received: received)
        (next.fence, next.signedOut) = (spent.fence, spent.signedOut)
        let step = write(next, over: revision, .token(token, began: began, failure), moment)
        // Until the token is saved, the mark prevents others from using the spent one; a repeatable load spends nothing.
        settleStray(with: plan.isRepeatable ? step : nil)
        return step
    }

    /// Notes that a request has no response; returns whether the server is asked once more, within its grace period.
    private mutating func asksAgain(
        after failure: FlightFailure, over spent: GrantRecord?, began: Duration, at moment: Moment
    ) -> Bool {
        guard let spent, !failure.isDefinite, !isHarmless(spent), !moment.isAbandoned else { return false }
        defer { knowledge.unanswered = spent.generation }
        return knowledge.unanswered != spent.generation && isInGrace(since: began, at: moment)
            && plan.deadline.map { moment.now < $0 } ?? true
    }

    /// Writes a failure into the record, for all services, and removes the mark.
    ///
    /// If the response was lost, the server may still be working on the request. The mark is removed even so: the response comes to
    /// nobody, so no wait can save what the server does with that request. If the server never gets it, the token is good, and if
    /// the server has a grace period, the next request must come soon.
    private mutating func note(
        _ failure: FlightFailure, over spent: GrantRecord?, at revision: SharedRecord.Revision?, _ moment: Moment
    ) -> Step {
        guard var record = spent else { return end(.failed(failure)) }
        record.mark = nil
        let isRefusal = failure.error.remedy == .signIn
        if failure.error.remedy != .retry { knowledge.refused = record.generation }
        // Without a refresh token, the refusal concerns this service alone: another service may be able to sign in.
        let isOwn = isRefusal && record.token?.refreshToken == nil
        // A refusal may be about this service's own client (RFC 6749 §5.2), so the first one doesn't keep other services from
        // asking. A program that keeps restarting is a new service each time, so only a service whose client the server has
        // accepted counts as the first.
        let isServed = knowledge.served == record.fence
        let refuser = record.trouble?.refuser ?? (isRefusal && isServed ? setting.owner : nil)
        let isForAll = isRefusal && (refuser.map { $0 != setting.owner } ?? false || record.trouble?.isRefused ?? false)
        // A failure that concerns only this service doesn't lengthen the others' pauses either.
        let isOwnFault = failure.error.remedy != .retry && !isForAll
        let failures = min(record.trouble?.failures ?? 0, 1_000) + (isOwnFault ? 0 : 1)
        let pause =
            failure.error.remedy == .retry
            ? RefreshPolicy.pause(afterFailures: failures, jitter: setting.jitter) : RefreshPolicy.longestPause
        let wish = RefreshPolicy.honoured(retryAfter: failure.retryAfter) ?? pause
        if isOwn {
            record.trouble = nil
        } else if isRefusal || !isOwnFault {
            record.trouble = GrantRecord.Trouble(
                failures: failures, owner: setting.owner, refuser: refuser, isRefused: isForAll,
                pause: isOwnFault ? .zero : wish, time: moment.wall ?? 0)
        }
        var counted = failure
        // While a token is good, the service's own pauses apply.
        if !plan.hasToken, failures > 1, wish > .zero { counted.retryAfter = wish }
        let step = write(record, over: revision, .failure(counted), moment)
        settleStray(with: step)
        return step
    }

    /// Settles the mark that the record being written replaces, even if that must be tried again later; `nil`: the mark must
    /// stay.
    private mutating func settleStray(with step: Step?) {
        if case .swap(let record, _)? = step { stray?.record = record } else { stray = nil }
    }

    private mutating func write(
        _ record: GrantRecord, over revision: SharedRecord.Revision?, _ purpose: Write.Purpose, _ moment: Moment
    ) -> Step {
        knowledge.writes += 1
        var record = record
        record.write = "\(setting.owner).\(plan.id).\(knowledge.writes)"
        phase = .writing(Write(record: record, revision: revision, began: moment.now, purpose: purpose))
        return .swap(record, ifAt: revision)
    }

    /// Handles a record that is now in the store.
    private mutating func landed(_ write: Write, at revision: SharedRecord.Revision, _ moment: Moment) -> Step {
        see(Sighting(record: write.record, revision: revision), at: moment)
        knowledge.meet(write.record)
        defer { knowledge.hasFailedToWrite = false }
        switch write.purpose {
        case .mark(let isTakeOver):
            if moment.isAbandoned { return end(.gaveUp) }
            // The store may have refused the holder's save as well until now, although it could be read.
            if isTakeOver, knowledge.hasFailedToWrite { knowledge.lateSaveEnd = moment.now + Self.lateSaveTime }
            if moment.now < knowledge.lateSaveEnd {
                phase = .waiting
                return .wait(from: revision, atMost: knowledge.lateSaveEnd - moment.now)
            }
            // A service that was suspended meanwhile may have lost the mark to another, so it reads again unless enough time is
            // left: others respect the mark at least for its limit, of which the exchange needs the transport's part.
            let end = write.began + sendingLimit(within: write.record.mark?.limit)
            guard moment.now < end else {
                phase = .reading
                return .read
            }
            phase = .loading(write.record, revision, began: moment.now)
            sendingEnd = end
            return .load(previous: write.record.token)
        case .token(let token, let began, let failure):
            (knowledge.generation, knowledge.served) = (write.record.generation, write.record.fence)
            return handOut(token, failure, since: began, at: moment)
        case .failure(let failure): return end(.failed(failure))
        }
    }

    /// Handles a swap that failed or may have failed, given the store's current record.
    private mutating func meets(_ write: Write, _ sighting: Sighting?, _ failure: FlightFailure?, at moment: Moment) -> Step {
        if let sighting, sighting.record.write == write.record.write {
            return landed(write, at: sighting.revision, moment)
        }
        switch write.purpose {
        case .mark:
            // The record hasn't changed: the store can be read but not written.
            if let failure, sighting?.revision == write.revision { return goOnWithoutStore(failure, at: moment) }
            return judge(sighting, at: moment)
        case .token(let token, let began, let cause):
            let isMoved = sighting.map { $0.record.generation >= write.record.generation } ?? false
            if isMoved { return yield(token, to: sighting, at: moment) }
            // At most marks and failures were added: the record still has the spent token, so ours is the only valid one.
            let next = Write(
                record: write.record, revision: sighting?.revision, began: moment.now,
                purpose: .token(token, began: began, cause),
                attempts: max(write.attempts, 1))
            phase = .writing(next)
            return .swap(next.record, ifAt: next.revision)
        case .failure(let counted):
            guard let sighting else { return end(.failed(counted)) }
            let spent = write.record.generation
            if sighting.record.generation == spent, sighting.record.mark?.owner == setting.owner || !counted.isDefinite {
                return end(.failed(counted))
            }
            if counted.isDefinite { refusal = Refusal(generation: spent, failure: counted) }
            return judge(sighting, at: moment)
        }
    }

    /// Gives way to a later token or sign-out in the record; this flight's token is handed over for revocation.
    private mutating func yield(_ token: AccessToken, to sighting: Sighting?, at moment: Moment) -> Step {
        let isSame = sighting?.record.token?.refreshToken == token.refreshToken
        let isTombstone = sighting?.record.isTombstone ?? true
        let discarded = token.refreshToken != nil && !isSame || isTombstone ? token : nil
        if isTombstone {
            knowledge.generation = sighting?.record.generation
            knowledge.signedOut = max(knowledge.signedOut ?? 0, sighting?.record.signedOut ?? 0)
            knowledge.session = nil
            return end(.signedOut(isOfSession: true), discarding: discarded)
        }
        // The record's token may be expired or marked; the next flight continues from there.
        var moment = moment
        moment.isAbandoned = true
        if case .end(let ending) = judge(sighting, at: moment) { return end(ending.outcome, discarding: discarded) }
        return end(.gaveUp, discarding: discarded)
    }

    /// Ends the flight when the outcome of a swap is unknown and the store can't be read either.
    private mutating func settleLater(_ write: Write, _ failure: FlightFailure, at moment: Moment) -> Step {
        switch write.purpose {
        case .mark: return goOnWithoutStore(failure, at: moment)
        case .failure(let counted): return end(.failed(counted))
        case .token(let token, let began, let cause):
            if failure.isPermanent { return end(.failed(failure), discarding: token) }
            if plan.isRepeatable, cause == nil { return handOut(token, nil, since: began, at: moment) }
            return again(write, failure)
        }
    }

    /// Retries saving the fleet's only valid refresh token, however long that takes.
    private mutating func again(_ write: Write, _ failure: FlightFailure) -> Step {
        var write = write
        write.attempts += 1
        phase = .settling(write, failure)
        return .pause(min(.milliseconds(50) * (1 << min(write.attempts, 6)), Self.longestSavePause))
    }
}
