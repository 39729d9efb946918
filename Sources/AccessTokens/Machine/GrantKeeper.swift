/// Keeps a service's grant, in one of four places, and does the store's part of each flight and each fence.
///
/// A pure value of the state machine, with one time: it takes what the machine decides and what the store answers, adds the
/// effects, and reports how flights have ended. Only the machine's file changes it.
struct GrantKeeper: Sendable {
    typealias Machine = TokenService.StateMachine
    typealias Operation = StoreQueue.Operation
    /// How a flight has ended.
    typealias Report = (flight: Int, outcome: FlightOutcome)

    /// Where a grant is kept.
    enum Place: Sendable, Equatable {
        /// Only in memory.
        case memory
        /// In a store of the service's own, which is read once, at the first miss.
        case store
        /// By another service, whose grant several keys use.
        case lender
        /// In a record that several services share; its session performs whole flights. A hit checks it an interval after the last
        /// check; `nil`: hits don't.
        case record(checkEvery: Duration?)
    }

    let place: Place
    /// How long a read may take, within the limit of its load.
    let readLimit: Duration
    /// How long after its limit a load or an operation of the store is forgotten if it hasn't ended.
    let patience: Duration
    var grant: Grant
    /// The store's running and pending operations.
    private(set) var queue = StoreQueue()
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

    /// - Parameter timeouts: ``RefreshPolicy/timeoutsUntilForgotten``; fewer in the walk.
    init(_ place: Place, _ policy: RefreshPolicy, timeoutsUntilForgotten timeouts: Int) {
        self.place = place
        readLimit = min(policy.loadTimeout, RefreshPolicy.storeTimeout)
        patience = policy.loadTimeout * (timeouts - 1)
        isUnread = place == .store
        grant = Grant(hasStore: place != .memory && place != .lender)
    }
}

extension GrantKeeper {
    var hasStore: Bool { grant.hasStore }

    /// Whether a session performs whole flights with a record that other services change, too.
    var isShared: Bool { if case .record = place { true } else { false } }

    /// A read has taken too long.
    var readIsLate: TokenServiceError { .storeIsLate(after: readLimit) }

    // MARK: Flights

    /// Reads what is kept, for a flight; returns the flight's limit, or `nil` if the record's session performs it.
    mutating func read(for flight: Int, at now: Duration, _ outbox: inout Machine.Outbox) -> Duration? {
        guard !isShared else { return nil }
        enqueue(.load, flight: flight, until: now + readLimit, &outbox)
        return now + readLimit
    }

    /// Whether a caller that may start no load checks the record instead, once a second at most: another service may have saved a
    /// token.
    mutating func checksInstead(at now: Duration) -> Bool {
        guard isShared, nextCheckInstead <= now else { return false }
        nextCheckInstead = now + RefreshPolicy.lookPause
        return true
    }

    /// Schedules the next check of the record, one interval after a check that ended or was impossible.
    mutating func checked(at now: Duration) {
        if case .record(let interval?) = place { nextCheck = now + interval }
    }

    /// When a hit has something to do for the keeper: a check of the record, or another save.
    func nextDue(isDrained: Bool) -> Duration? {
        if let unsaved, queue.operations.isEmpty { return unsaved.nextAttempt }
        return isDrained ? nil : nextCheck
    }

    /// Saves a token; returns whether the flight has to wait for that, as it doesn't for a store that is late.
    mutating func save(
        _ token: AccessToken, from start: Duration, for flight: Int?, at now: Duration, _ outbox: inout Machine.Outbox
    ) -> Bool {
        guard hasStore else { return false }
        let waiting = queue.isLate ? nil : flight
        enqueue(.save(token, start: start), flight: waiting, until: now + RefreshPolicy.storeTimeout, &outbox)
        return waiting != nil
    }

    // MARK: Fences

    /// Begins another session.
    mutating func fence(_ number: Int) { generation = number }

    /// Takes the grant of a sign-in; returns whether the flight has to wait until it is saved.
    mutating func signIn(
        _ token: AccessToken, from start: Duration, for flight: Int?, at now: Duration, _ outbox: inout Machine.Outbox
    ) -> Bool {
        outbox.effects.append(.gaveUp(outbox.discard(grant.put(token, .replaced)), fence: generation))
        guard hasStore else { return endFence(&outbox) }
        let waiting = queue.isLate ? nil : flight
        enqueue(
            .save(token, start: start), flight: waiting, isFence: true, handsOver: isUnread || isShared,
            until: now + RefreshPolicy.storeTimeout, &outbox)
        isUnread = false
        return waiting != nil
    }

    /// Drops the grant and removes it from the store.
    mutating func signOut(at now: Duration, _ outbox: inout Machine.Outbox) {
        outbox.effects.append(.gaveUp(outbox.discard(grant.put(nil, .signedOut)), fence: generation))
        isUnread = false
        guard hasStore else { return _ = endFence(&outbox) }
        enqueue(.remove, isFence: true, handsOver: true, until: now + RefreshPolicy.storeTimeout, &outbox)
    }

    /// Ends the last fence, for which there is no store to wait for.
    private func endFence(_ outbox: inout Machine.Outbox) -> Bool {
        outbox.effects.append(.endFences([generation], givenUp: [], nil))
        return false
    }

    // MARK: The store

    /// What the store has yet to save or remove, because it failed; a shared store's session knows that itself.
    var unsaved: StoreQueue.Unsaved? { isShared ? nil : queue.unsaved }

    /// Whether the store has yet to save or remove something.
    var isBehind: Bool { !isShared && !queue.isSettled }

    /// Repeats the last save or removal, if it failed and isn't being repeated.
    mutating func saveAgain(at now: Duration, _ outbox: inout Machine.Outbox) {
        guard unsaved != nil, queue.operations.isEmpty, let kind = queue.lastWrite?.kind else { return }
        enqueue(kind, until: now + RefreshPolicy.storeTimeout, &outbox)
    }

    /// When the running operation exceeds its limit, or counts as lost while another waits behind it.
    var nextDeadline: Duration? { queue.nextDeadline ?? (queue.operations.count > 1 ? lostFrom : nil) }

    /// When the running operation counts as lost; `nil` if it isn't late, or if its session runs it.
    var lostFrom: Duration? { queue.isLate && !isShared ? isAtWorkUntil : nil }

    /// When the running operation should have ended at the latest, even if nothing waits for it; `nil`: none runs.
    var isAtWorkUntil: Duration? { queue.operations.first.map { $0.deadline + patience } }

    /// When the service can be released without a loss: the store is up to date, or the callback of a read was lost.
    var idleFrom: Duration? {
        // Nothing but memory has the refresh token.
        guard hasStore || grant.token?.refreshToken == nil else { return nil }
        // A shared store's session knows whether a write is missing: a later flight may have repeated one that failed.
        if isShared ? queue.operations.isEmpty : queue.isSettled { return .zero }
        return queue.operations.count == 1 && !queue.operations[0].isWrite ? lostFrom : nil
    }

    /// Takes the end of an operation, in time or late.
    ///
    /// `found` is the token that it read in the store, and `givenUp` are the grants that it displaced from a shared one.
    mutating func ended(
        _ operation: Operation, found: Machine.Found?, givenUp: [AccessToken], error: TokenServiceError?, at now: Duration,
        _ outbox: inout Machine.Outbox
    ) -> Report? {
        var givenUp = givenUp
        guard operation.id == queue.operations.first?.id else {
            // It counted as lost, and may have written after a later one, whose work is then repeated.
            _ = handOver(found?.token, by: operation, &outbox)
            if let again = queue.endLost(operation, error, at: now) {
                enqueue(again, until: now + RefreshPolicy.storeTimeout, &outbox)
            }
            return nil
        }
        guard let operation = queue.end(error, hasRead: found != nil, at: now) else { return nil }
        begin(at: now, &outbox)
        if let token = handOver(found?.token, by: operation, &outbox) { givenUp.append(token) }
        return finish(operation, found: found, givenUp: givenUp, error: error, &outbox)
    }

    /// Compares the limits of the store's operations with the time; a late answer is still used.
    ///
    /// An operation so late that its callback must be lost is forgotten, and the next one begins beside it. Not with a shared
    /// grant, whose session runs the operations itself.
    mutating func elapse(to now: Duration, _ outbox: inout Machine.Outbox) -> [Report] {
        var reports = queue.elapse(to: now).compactMap {
            finish($0, error: $0.isWrite ? .storeIsLate : readIsLate, isLate: true, &outbox)
        }
        if let lostFrom, lostFrom <= now, let lost = queue.forgetFirst(at: now) {
            if let flight = lost.flight { reports.append((flight, .gaveUp)) }
            begin(at: now, &outbox)
        }
        if let next = unsaved?.nextAttempt, next <= now { saveAgain(at: now, &outbox) }
        return reports
    }

    private mutating func begin(at now: Duration, _ outbox: inout Machine.Outbox) {
        if let next = queue.begin(at: now) { outbox.effects.append(.perform(next)) }
    }

    /// Finishes an operation that has ended or is late, with the fences that waited for it; returns how its flight has ended.
    @inline(never)
    private mutating func finish(
        _ operation: Operation, found: Machine.Found? = nil, givenUp: [AccessToken] = [], error: TokenServiceError?,
        isLate: Bool = false, _ outbox: inout Machine.Outbox
    ) -> Report? {
        if !operation.fences.isEmpty { outbox.effects.append(.endFences(operation.fences, givenUp: givenUp, error)) }
        switch (operation.kind, operation.flight) {
        case (.load, let flight?):
            readError = error
            if let error { return (flight, isLate ? .overdue(error) : .failed(error)) }
            isUnread = false
            return (flight, found.map { .found($0.token, age: $0.age) } ?? .gaveUp)
        case (.save, let flight?): return (flight, .saved(error))
        // If it dates from before the last fence, only its own fence's callers are told: an event would have an earlier
        // generation.
        default: if let error, operation.generation == generation { outbox.announce(.storeFailed, generation, error: error) }
        }
        return nil
    }

    /// Passes a token that a removal or a save found in the store to the program.
    private mutating func handOver(
        _ found: AccessToken?, by operation: Operation, _ outbox: inout Machine.Outbox
    ) -> AccessToken? {
        guard operation.handsOver, let found else { return nil }
        return outbox.discard(grant.giveUp(found, operation.reason))
    }

    /// Puts an operation behind the earlier ones; nothing waits for it if the store is late.
    @inline(never)
    private mutating func enqueue(
        _ kind: StoreQueue.Kind, flight: Int? = nil, isFence: Bool = false, handsOver: Bool = false, until deadline: Duration,
        _ outbox: inout Machine.Outbox
    ) {
        let isLate = queue.isLate
        queue.add(
            kind, generation: generation, deadline: deadline, flight: flight, fence: isFence && !isLate ? generation : nil,
            handsOver: handsOver)
        if isLate {
            outbox.announce(.storeFailed, generation, error: .storeIsLate)
            if isFence { outbox.effects.append(.endFences([generation], givenUp: [], .storeIsLate)) }
        }
        if queue.operations.count == 1 { outbox.effects.append(.perform(queue.operations[0])) }
    }
}

/// How a flight has ended, or what its load has brought.
package enum FlightOutcome: Sendable {
    /// The loader's token, which is saved before any caller gets it.
    case loaded(AccessToken)
    /// The token that the flight held is saved, or can't be.
    case saved(TokenServiceError?)
    /// The store has the token of an earlier run, which a load may have to replace; the age counts from the start of its load.
    case found(AccessToken, age: Duration)
    /// A token that is in the shared record, and how long ago its load began.
    case token(AccessToken, age: Duration, isAdopted: Bool)
    /// - Parameters:
    ///   - isCostly: Whether the flight brought a new grant, which is kept already.
    ///   - salvaged: A new grant that came with the failure.
    case failed(TokenServiceError, retryAfter: Duration? = nil, isCostly: Bool = false, salvaged: AccessToken? = nil)
    /// The store hasn't answered in time; it may still do so.
    case overdue(TokenServiceError)
    /// There is no token, and none was loaded: callers need a load of their own.
    case gaveUp
    /// A check found a grant newer than any that the service has tried.
    case newGrant
    /// Another service has signed out; `isOfSession`: whether the record had shown a session before.
    case signedOut(isOfSession: Bool)

    /// The grant that the server has issued to the flight's load.
    var issued: AccessToken? {
        switch self {
        case .loaded(let token): token
        case .failed(_, _, _, let salvaged): salvaged
        default: nil
        }
    }
}
