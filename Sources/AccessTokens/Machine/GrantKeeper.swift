/// Keeps a service's grant, in one of four places, and does the store's part of each flight and each fence.
///
/// A pure value of the state machine, with one time: it takes what the machine decides and how the store responds, adds the
/// effects, and reports how flights have ended. Only the machine's file changes it.
struct GrantKeeper: Sendable {
    typealias Machine = TokenService.StateMachine
    /// How a flight has ended.
    typealias Report = (flight: Int, outcome: FlightOutcome)

    /// Where a grant is kept.
    enum Place: Sendable {
        /// Only in memory.
        case memory
        /// In a store of the service's own, which is read at the first miss and before a load spends the refresh token.
        case store
        /// By another service, whose grant several keys use.
        case lender
        /// In a record that several services share; its session performs whole flights. A hit checks it an interval after the last
        /// check; `nil`: hits don't.
        case record(checkEvery: Duration?)

        var hasStore: Bool {
            switch self {
            case .memory, .lender: false
            case .store, .record: true
            }
        }
    }

    let place: Place
    /// Whether a load needs nothing that the store may have.
    private let isRepeatable: Bool
    private let loadTimeout: Duration
    /// ``RefreshPolicy/timeoutsUntilForgotten``; fewer in the walk.
    private let timeoutsUntilForgotten: Int
    var grant: Grant
    /// The operations of the store: the first one runs, the others wait in the order in which the service decided on them.
    ///
    /// There are never more than a few: a pending one that a later one supersedes is dropped before it begins, so a hanging store
    /// accumulates nothing.
    private(set) var operations: [Operation] = []
    private var count = 0
    /// The save or removal that the service decided on last.
    private(set) var lastWrite: (id: Int, kind: Kind)?
    /// Whether an operation that should have handed over the stored token was lost or failed, so that the next one must do it.
    private var owesHandOver = false
    /// The last save or removal, if it failed, so that the store is out of date; that of the lender, if there is one.
    private(set) var unsaved: FailedWrite?
    /// Whether it is unknown what an earlier run left in the store.
    private(set) var isUnread: Bool
    /// Why the store couldn't be read when it was asked last.
    private(set) var readError: TokenServiceError?
    /// The number of the last fence.
    private var generation = 0
    /// When a hit starts a check of the shared record; `nil`: never.
    private(set) var nextCheck: Duration?
    /// The earliest time at which a caller that may start no load checks the record instead.
    private var nextCheckInstead = Duration.zero

    @inline(__always) init(_ place: Place, _ policy: RefreshPolicy, isRepeatable: Bool, timeoutsUntilForgotten: Int) {
        self.place = place
        self.isRepeatable = isRepeatable
        loadTimeout = policy.loadTimeout
        self.timeoutsUntilForgotten = timeoutsUntilForgotten
        isUnread = if case .store = place { true } else { false }
        grant = Grant(hasStore: place.hasStore)
    }
}

extension GrantKeeper {
    /// The kinds of operations.
    enum Kind: Sendable {
        case load
        case save(AccessToken, start: Duration)
        case remove

        fileprivate var token: AccessToken? { if case .save(let token, _) = self { token } else { nil } }

        /// Why the service gives up what it had before, and what it finds in the store.
        fileprivate var reason: DiscardedGrant.Reason { if case .remove = self { .signedOut } else { .replaced } }
    }

    struct Operation: Sendable {
        let id: Int
        let kind: Kind
        /// The number of fences when the service decided on it.
        let generation: Int
        /// When nothing waits for it any longer.
        var deadline: Duration
        /// The flight that continues when it ends.
        var flight: Int?
        /// The fences whose callers wait for its end.
        var fences: [Int] = []
        /// Whether it first reads the stored token, which the service doesn't know and which has to be revoked.
        var handsOver = false
        /// Whether its deadline or an earlier operation's has passed, so that nothing waits for it any longer.
        var isLate = false

        /// Whether it changes what the store has.
        var isWrite: Bool { if case .load = kind { false } else { true } }
    }

    var hasStore: Bool { grant.hasStore }

    /// Whether a session performs whole flights with a record that other services change, too.
    var isShared: Bool { if case .record = place { true } else { false } }

    /// Whether another service keeps the grant.
    var isLent: Bool { if case .lender = place { true } else { false } }

    /// How long a read may take, within the limit of its load, of which a read before a load leaves half.
    private var readLimit: Duration { min(isUnread ? loadTimeout : loadTimeout.divided(by: 2), RefreshPolicy.storeTimeout) }

    /// How long after its limit a load or an operation of the store is forgotten if it hasn't ended.
    ///
    /// Not stored: the product takes a thousand instructions, which each new service would pay.
    var patience: Duration { loadTimeout * (timeoutsUntilForgotten - 1) }

    /// Whether a load that spends the refresh token has to read the store first, since another service may have saved another.
    ///
    /// Not while the service's own save or removal is under way or pending: that has the last word anyway.
    var readsFirst: Bool { if case .store = place { !isUnread && !isBehind } else { false } }

    /// A read has taken too long.
    var readIsLate: TokenServiceError { .storeIsLate(after: readLimit) }

    // MARK: Flights

    /// Reads what is kept, for a flight; returns the flight's limit, or `nil` if the record's session performs it.
    mutating func read(for flight: Int, at now: Duration, _ outbox: inout Machine.Outbox) -> Duration? {
        guard !isShared else { return nil }
        add(.load, flight: flight, at: now, &outbox)
        return now + readLimit
    }

    /// Whether a caller that may start no load checks the record instead, once a second at most: another service may have saved a
    /// token.
    mutating func checksInstead(at now: Duration) -> Bool {
        guard isShared, nextCheckInstead <= now else { return false }
        nextCheckInstead = now + RefreshPolicy.checkPause
        return true
    }

    /// Schedules the next check of the record, one interval after a check that ended or was impossible.
    mutating func checked(at now: Duration) {
        if case .record(let interval?) = place { nextCheck = now + interval }
    }

    /// When a hit has something to do for the keeper: another save or, if it may, a check of the record.
    func nextDue(mayCheck: Bool) -> Duration? {
        if let next = unsaved?.nextAttempt, operations.isEmpty { return next }
        return mayCheck ? nextCheck : nil
    }

    /// Saves a token; returns whether the flight has to wait for that, as it doesn't for a store that is late.
    mutating func save(
        _ token: AccessToken, from start: Duration, for flight: Int?, at now: Duration, _ outbox: inout Machine.Outbox
    ) -> Bool {
        guard hasStore else { return false }
        let waiting = isLate ? nil : flight
        add(.save(token, start: start), flight: waiting, at: now, &outbox)
        return waiting != nil
    }

    // MARK: Fences

    /// Notes a fence, whose own save or removal supersedes one that failed.
    mutating func noteFence(_ number: Int) {
        generation = number
        // A lender tells itself.
        if !isLent { unsaved = nil }
    }

    /// Saves the grant of a sign-in, or removes that of a sign-out; returns whether the flight has to wait until it is saved.
    mutating func fence(_ kind: Kind, for flight: Int? = nil, at now: Duration, _ outbox: inout Machine.Outbox) -> Bool {
        let token = kind.token, handsOver = token == nil || isUnread
        outbox.effects.append(.gaveUp(outbox.discard(grant.put(token, kind.reason)), fence: generation))
        isUnread = false
        guard hasStore else {
            // There is no store to wait for.
            outbox.effects.append(.endFences([generation], givenUp: [], nil))
            return false
        }
        let waiting = isLate ? nil : flight
        add(kind, flight: waiting, isFence: true, handsOver: handsOver, at: now, &outbox)
        return waiting != nil
    }

    // MARK: The store

    /// Whether the operation that runs has exceeded its limit: then nothing else waits for the store either.
    var isLate: Bool { operations.first?.isLate ?? false }

    /// The number of the operation that runs and hasn't exceeded its limit.
    var awaitedOperation: Int? { isLate ? nil : operations.first?.id }

    /// Takes what the lender's store, or a shared record, has yet to save.
    mutating func noteUnsaved(_ unsaved: FailedWrite?) { self.unsaved = unsaved }

    /// Whether the store has yet to save or remove something.
    var isBehind: Bool { !operations.isEmpty || unsaved != nil }

    /// What the store isn't known to have saved or removed.
    var unsavedChange: UnsavedChange? {
        guard let lastWrite, unsaved != nil || operations.contains(where: \.isWrite) else { return nil }
        return UnsavedChange(token: lastWrite.kind.token, error: unsaved?.error)
    }

    /// Repeats the last save or removal, if it failed and isn't being repeated.
    mutating func saveAgain(at now: Duration, _ outbox: inout Machine.Outbox) {
        guard let unsaved, operations.isEmpty else { return }
        if isLent, let next = unsaved.nextAttempt, next <= now {
            // The lender paces itself, and tells how it went.
            self.unsaved = FailedWrite(error: unsaved.error, failures: unsaved.failures, nextAttempt: nil)
            outbox.effects.append(.saveLentGrant)
        }
        guard let kind = lastWrite?.kind else { return }
        add(kind, at: now, &outbox)
    }

    /// When the running operation exceeds its limit, or counts as lost while another waits behind it.
    var nextDeadline: Duration? { isLate ? operations.count > 1 ? lostFrom : nil : operations.first?.deadline }

    /// When the running operation counts as lost; `nil` if it isn't late, or if its session runs it.
    var lostFrom: Duration? { isLate && !isShared ? isAtWorkUntil : nil }

    /// When the running operation should have ended at the latest, even if nothing waits for it; `nil`: none runs.
    var isAtWorkUntil: Duration? { operations.first.map { $0.deadline + patience } }

    /// When the service can be released without a loss: the store is up to date, or the callback of a read was lost.
    var idleFrom: Duration? {
        // Nothing but memory has the refresh token.
        guard hasStore || grant.token?.refreshToken == nil else { return nil }
        // A shared record's session knows whether a write is missing.
        if isShared ? operations.isEmpty : isLent || !isBehind { return .zero }
        return operations.count == 1 && !operations[0].isWrite ? lostFrom : nil
    }

    /// Takes the end of an operation, in time or late.
    ///
    /// `found` is the token that it read in the store, and `givenUp` are the grants that it displaced from a shared one.
    mutating func ended(
        _ operation: Operation, found: Machine.Found?, givenUp: [AccessToken], _ failure: FlightFailure?, at now: Duration,
        _ outbox: inout Machine.Outbox
    ) -> Report? {
        guard operation.id == operations.first?.id else {
            lostOperationEnded(operation, found: found?.token, failure, at: now, &outbox)
            return nil
        }
        let isChange = failure == nil && isReadForLoad(operations[0]) && !(found.map { grant.knows($0.token) } ?? false)
        // Another service's change has the last word over a write that waits behind the read, whose grant is then only here.
        if isChange {
            for token in operations.dropFirst().compactMap(\.kind.token) { outbox.discard(grant.handOver(token, .superseded)) }
            operations.removeLast(operations.count - 1)
        }
        var givenUp = givenUp
        let isTold = unsaved?.error.isLasting ?? false && unsaved?.error.remedy == failure?.error.remedy
        let operation = removeFirst(failure, hasRead: found != nil, at: now, &outbox)
        if let token = handOver(found?.token, by: operation, &outbox) { givenUp.append(token) }
        return finish(operation, found: found, isChange: isChange, givenUp: givenUp, failure, isTold: isTold, &outbox)
    }

    /// Takes the end of an operation that counted as lost.
    ///
    /// It may have written after a later one, whose work is then repeated, unless a write that hasn't begun yet follows anyway.
    private mutating func lostOperationEnded(
        _ lost: Operation, found: AccessToken?, _ failure: FlightFailure?, at now: Duration, _ outbox: inout Machine.Outbox
    ) {
        guard lost.isWrite, let lastWrite else { return }
        _ = handOver(found, by: lost, &outbox)
        if failure == nil, lost.handsOver { owesHandOver = false }
        if lastWrite.id == lost.id {
            note(failure, at: now)
        } else if !operations.dropFirst().contains(where: \.isWrite) {
            add(lastWrite.kind, at: now, &outbox)
        }
    }

    /// Compares the limits of the store's operations with the time; a late response is still used.
    ///
    /// An operation so late that its callback must be lost is forgotten, and the next one begins beside it. Not with a shared
    /// grant, whose session runs the operations itself.
    mutating func elapse(to now: Duration, repeats: Bool = true, _ outbox: inout Machine.Outbox) -> [Report] {
        var reports: [Report] = []
        if !isLate, let deadline = operations.first?.deadline, deadline <= now {
            let late = operations
            for index in operations.indices {
                operations[index].isLate = true
                operations[index].fences = []
                // A late restored token is still used, unless a load goes on without it; a token that was to be saved is published
                // unsaved.
                if operations[index].isWrite || !isUnread { operations[index].flight = nil }
            }
            reports = late.compactMap {
                finish($0, FlightFailure(error: $0.isWrite ? .storeIsLate : readIsLate), isLate: true, &outbox)
            }
        }
        if let lostFrom, lostFrom <= now {
            let lost = removeFirst(FlightFailure(error: .storeIsLate), isLost: true, at: now, &outbox)
            if let flight = lost.flight { reports.append((flight, .gaveUp)) }
        }
        if repeats, let next = unsaved?.nextAttempt, next <= now { saveAgain(at: now, &outbox) }
        return reports
    }

    /// Takes out the operation that has ended or is lost, and begins the next one.
    ///
    /// One that waited behind a late one gets a new limit, since the store is responding.
    private mutating func removeFirst(
        _ failure: FlightFailure?, hasRead: Bool = false, isLost: Bool = false, at now: Duration, _ outbox: inout Machine.Outbox
    ) -> Operation {
        let operation = operations.removeFirst()
        if operation.isWrite, operation.generation == generation { note(failure, isLost: isLost, at: now) }
        let owes = failure != nil && operation.handsOver && !hasRead
        guard !operations.isEmpty else {
            owesHandOver = owesHandOver || owes
            return operation
        }
        if owes { operations[0].handsOver = true }
        if isLate { (operations[0].isLate, operations[0].deadline) = (false, now + RefreshPolicy.storeTimeout) }
        outbox.effects.append(.perform(operations[0]))
        return operation
    }

    /// Notes how a save or removal has ended; a pending one supersedes it when it ends.
    private mutating func note(_ failure: FlightFailure?, isLost: Bool = false, at now: Duration) {
        guard let failure, !failure.tookEffect else { return unsaved = nil }
        let failures = unsaved?.failures ?? 0
        let longest = RefreshPolicy.longestPause, own = Duration.seconds(1 << min(failures, 6))
        let pause = failure.error.isLasting ? longest : min(max(own, failure.retryAfter ?? .zero), longest)
        unsaved = FailedWrite(error: failure.error, failures: failures + 1, nextAttempt: isLost ? nil : now + pause)
    }

    /// Finishes an operation that has ended or is late, with the fences that waited for it; returns how its flight has ended.
    ///
    /// - Parameters:
    ///   - isChange: Whether it has found another service's change.
    ///   - isTold: Whether an event has told of the failure, which waiting can't mend.
    @inline(never)
    private mutating func finish(
        _ operation: Operation, found: Machine.Found? = nil, isChange: Bool = false, givenUp: [AccessToken] = [],
        _ failure: FlightFailure?, isTold: Bool = false, isLate: Bool = false, _ outbox: inout Machine.Outbox
    ) -> Report? {
        let error = failure?.error
        if !operation.fences.isEmpty { outbox.effects.append(.endFences(operation.fences, givenUp: givenUp, error)) }
        switch (operation.kind, operation.flight) {
        case (.load, _) where operation.generation != generation: break
        case (.load, let flight?) where !isUnread:
            // A store that can't be read stops no load.
            if let error = isChange ? .storeHasOtherUser : error { outbox.announce(.storeFailed, generation, error: error) }
            guard isChange else { return (flight, .gaveUp) }
            // It must not be repeated over the other service's.
            lastWrite = nil
            // A later sign-in there is found by the next caller.
            isUnread = found == nil
            return (flight, found.map { .found($0.token, age: $0.age, isOfOther: true) } ?? .signedOut(isOfSession: true))
        case (.load, let flight?):
            readError = error
            if let failure {
                if isLate { return (flight, .overdue) }
                // A store that waiting can't mend has nothing for a repeatable load.
                guard isRepeatable, failure.error.isLasting else { return (flight, .failed(failure)) }
                outbox.announce(.storeFailed, generation, error: failure.error)
            }
            isUnread = false
            return (flight, error == nil ? found.map { .found($0.token, age: $0.age, isOfOther: false) } ?? .gaveUp : .gaveUp)
        case (.save, let flight?): return (flight, .saved(isTold ? nil : failure))
        // If it dates from before the last fence, only its own fence's callers are told: an event would have an earlier
        // generation.
        default:
            if let error, !isTold, operation.generation == generation { outbox.announce(.storeFailed, generation, error: error) }
        }
        return nil
    }

    /// Whether an operation reads the store before a load spends the refresh token.
    private func isReadForLoad(_ operation: Operation) -> Bool {
        !isUnread && !operation.isWrite && operation.flight != nil && operation.generation == generation
    }

    /// Passes a token that a removal or a save found in the store to the program.
    private mutating func handOver(
        _ found: AccessToken?, by operation: Operation, _ outbox: inout Machine.Outbox
    ) -> AccessToken? {
        guard operation.handsOver, let found else { return nil }
        return outbox.discard(grant.giveUp(found, operation.kind.reason))
    }

    /// Puts an operation behind the earlier ones, in place of the pending ones that it supersedes; nothing waits for it if the store
    /// is late.
    @inline(never)
    mutating func add(
        _ kind: Kind, flight: Int? = nil, isFence: Bool = false, handsOver: Bool = false, at now: Duration,
        _ outbox: inout Machine.Outbox
    ) {
        let isLate = isLate, dropped = dropPending(before: kind)
        let limit = if case .load = kind { readLimit } else { RefreshPolicy.storeTimeout }
        count += 1
        var operation = Operation(
            id: count, kind: kind, generation: generation, deadline: now + limit, flight: flight,
            handsOver: handsOver || dropped.contains(where: \.handsOver), isLate: isLate)
        // Not a read before a load: what that finds is another service's grant, in use.
        if operation.isWrite, owesHandOver { operation.handsOver = true }
        for other in dropped where !other.fences.isEmpty {
            operation.fences += other.fences
            // Merging must not extend a fence's deadline.
            operation.deadline = min(operation.deadline, other.deadline)
        }
        if isFence, !isLate { operation.fences.append(generation) }
        operations.append(operation)
        if operation.isWrite { (lastWrite, owesHandOver) = ((count, kind), false) }
        if isLate {
            outbox.announce(.storeFailed, generation, error: .storeIsLate)
            if isFence { outbox.effects.append(.endFences([generation], givenUp: [], .storeIsLate)) }
        }
        if operations.count == 1 { outbox.effects.append(.perform(operation)) }
    }

    /// A removal supersedes everything before it; a save supersedes other saves, and no read waits behind another operation.
    private mutating func dropPending(before kind: Kind) -> [Operation] {
        let isPointless = { (operation: Operation) in
            switch (operation.kind, kind) {
            case (_, .load), (.remove, .save): false
            default: true
            }
        }
        let pending = operations.dropFirst()
        operations.removeLast(pending.count)
        operations += pending.filter { !isPointless($0) }
        return pending.filter(isPointless)
    }
}

/// A save or a removal to repeat.
@usableFromInline
package struct FailedWrite: Sendable {
    let error: TokenServiceError
    /// How many times in a row it failed.
    let failures: Int
    /// When an event or a hit repeats it: 1, 2, 4 … 60 s after the failure, but no sooner than the store asked, within 60 s.
    ///
    /// `nil`: it counts as lost, and repeating it by itself would pile up operations that hang.
    let nextAttempt: Duration?

    /// When it may be saved by waiting.
    var healsFrom: Duration? { error.isLasting ? nil : nextAttempt }
}

extension TokenServiceError {
    /// Whether waiting can't mend it.
    var isLasting: Bool { remedy != .retry }

    /// The event of a service that found another's change in its store.
    fileprivate static var storeHasOtherUser: TokenServiceError {
        TokenServiceError(.storeFailed, underlying: StoreHasOtherUser(), remedy: .programChange)
    }
}

/// A plain store has been changed by another service.
private struct StoreHasOtherUser: Error, CustomStringConvertible {
    let description =
        "Another service has changed this service's token store, whose session counts from now on. Two services must not spend one "
        + "refresh token: use one service, or share the grant, for example in a SharedFileTokenStore."
}
