import AccessTokens
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Connects a service to the grant that it shares: the store, and the sign-ins and sign-outs that haven't reached the store.
///
/// For `reset` and `replace` it acts as any token store. Loads go through ``SharedFlight`` instead. Only this file writes its
/// state.
final class SharedSession: Sendable {
    let sharing: TokenSharing
    let owner = String(UInt64.random(in: .min ... .max), radix: 36)
    private let store: any SharedTokenStore
    private let clock: ServiceClock
    private let environment: TokenService.Environment
    private let state = Lock(State())
    private let line = TurnLine()

    init(_ store: any SharedTokenStore, _ sharing: TokenSharing, clock: ServiceClock, environment: TokenService.Environment) {
        self.store = store
        self.sharing = sharing
        self.clock = clock
        self.environment = environment
    }

    private var executor: (any TaskExecutor)? {
        environment.loadExecutor == nil ? environment.executor : environment.limitExecutor
    }

    /// Returns the state with which a flight begins; a check leaves the user's request to retry to the next load.
    func begin(isCheck: Bool) -> State {
        state.withLock { state in
            defer { if !isCheck { state.isRetry = false } }
            return state
        }
    }

    /// Keeps what a flight has learnt, except the record's generation if a fence has come since the flight began.
    func learn(_ knowledge: SharedFlight.Knowledge, since fences: Int) {
        state.withLock { state in
            let generation = state.knowledge.generation
            state.knowledge.learn(knowledge, isFenced: state.fences != fences)
            if state.knowledge.generation != generation { state.isRetry = false }
        }
    }

    /// The sign-in or sign-out that hasn't reached the store yet.
    var lastFence: SharedFence? { state.withLock { $0.fence } }

    func note(_ stray: StrayMark) { state.withLock { $0.strays.append(stray) } }
    func forget(_ stray: StrayMark) { state.withLock { $0.strays.removeAll { $0.write == stray.write } } }

    /// Notes that the user asked to try again: the next load ignores the fleet's failures, unless a token or a sign-in comes
    /// first.
    func noteRetry() { state.withLock { $0.isRetry = true } }

    /// When the service can be released without a loss; `nil` until the store has the last sign-in or sign-out.
    ///
    /// While its mark is in the record, this service may load again at once; a new service would be another owner and would have
    /// to wait.
    var idleFrom: Duration? { state.withLock { $0.fence == nil ? $0.markEnd : nil } }

    var isBehind: Bool { state.withLock { $0.fence != nil } }

    /// Whether it is taking a mark back; its service is notified when that ends.
    var isAtWork: Bool { state.withLock { !$0.strays.isEmpty } }

    /// Notes the mark of a record that was read, or that was (or may have been) written.
    private func noteMark(in record: GrantRecord?, isWritten: Bool = false) {
        let mark = record?.mark.flatMap { $0.owner == owner ? $0 : nil }
        let end: Duration? = mark.map { mark in sharing.doubt.patience(with: mark).map { clock.now() + $0 } } ?? .zero
        state.withLock { if isWritten || mark == nil || $0.markEnd == .zero { $0.markEnd = end } }
    }

    // MARK: Fences

    /// Notes a sign-in or a sign-out; every flight that begins from now on writes it first, unless it has been written.
    func noteFence(_ token: StoredToken?, number: Int) {
        state.withLock { state in
            state.fence = SharedFence(token, number: number, owner: owner, after: state.fence)
            state.overtaken = nil
            state.fences += 1
            state.isRetry = false
            // A sign-out must reach the store even if as many operations hang as may.
            state.unfinished = [:]
        }
    }

    /// Writes the last sign-in or sign-out, unless the store has it.
    func settle() async throws {
        try await line.turn {
            while let fence = state.withLock({ $0.fence }) {
                let (displaced, overtaken) = try await write(fence)
                state.withLock { state in
                    if state.fence?.number == fence.number {
                        state.displaced += displaced
                        (state.fence, state.overtaken) = (nil, overtaken)
                    } else {
                        // The later fence has already given up this fence's token.
                        state.displaced += displaced.filter { $0.reason != .superseded }
                        state.fence?.followsSettled()
                    }
                }
            }
        }
    }

    /// Replaces the record by a token or a tombstone of a higher generation.
    ///
    /// - Returns: The grants that the write displaced, and the record's last sign-out if another service has overtaken the
    ///   session that began here.
    private func write(_ fence: SharedFence) async throws -> (displaced: [DiscardedGrant], overtaken: UInt64?) {
        var fence = fence
        var sighting: SharedFlight.Sighting?
        do {
            sighting = try await read(toReplace: true)
        } catch {
            fence.noteUnread()
            state.withLock { [fence] in $0.fence?.heed(fence) }
            throw error
        }
        for _ in 0..<1_000 {
            let record = sighting?.record
            switch verdict(of: &fence, on: record) {
            case .settled(let displaced):
                return state.withLock { [fence] in (displaced, $0.settle(fence, by: record)) }
            case .write(let next):
                state.withLock { $0.found = record?.token ?? $0.found }
                do {
                    guard case .conflict(let other) = try await swap(next, ifAt: sighting?.revision, toReplace: true) else {
                        return state.withLock { [fence] in (fence.displaced(in: record), $0.settle(fence, by: next)) }
                    }
                    sighting = other
                } catch {
                    // The write may have succeeded although its response was lost.
                    fence.noteAttempt(over: record)
                    state.withLock { [fence] in $0.noteAttempt(of: fence, over: record) }
                    sighting = try await read(toReplace: true)
                    guard sighting?.record.fence == fence.id else { throw error }
                }
            }
        }
        throw StoreContention()
    }

    /// Decides whether to write a fence over this record; a sign-out unknown to the service ends its session.
    private func verdict(of fence: inout SharedFence, on record: GrantRecord?) -> SharedFence.Verdict {
        let knowledge = state.withLock { $0.knowledge }
        func verdict() -> SharedFence.Verdict { fence.verdict(on: record, knowing: knowledge, wall: moment.wall) }
        if case .settled = verdict() { return verdict() }
        if fence.endsSession(before: record, knowing: knowledge) {
            let end = SessionEnd.beforeSignIn(fence.number, isKnown: knowledge.session != nil)
            state.withLock { $0.end = end }
        }
        return verdict()
    }

    /// Returns the grants that fences displaced, each only once, to be handed over.
    func takeDisplaced() -> [DiscardedGrant] {
        state.withLock { state in
            defer { state.displaced = [] }
            return state.displaced
        }
    }

    /// Whether a sign-in or a sign-out has found a flight's token in the record and hands it over itself.
    func hasFound(_ token: AccessToken) -> Bool { state.withLock { $0.found?.isSameGrant(as: token) ?? false } }

    func takeEnd() -> SessionEnd? { state.withLock { $0.takeEnd() } }

    @concurrent func load() async throws -> StoredToken? { nil }
    @concurrent func save(_ token: StoredToken) async throws { try await settle() }
    @concurrent func remove() async throws { try await settle() }

    // MARK: The store

    var moment: SharedFlight.Moment {
        let wall = environment.wallClock().timeIntervalSinceReferenceDate
        return SharedFlight.Moment(now: clock.now(), wall: wall.isFinite ? wall : nil)
    }

    /// The store's name for this process; the store may have to read a file for it.
    func holder() async -> String? { try? await performOperation { await $0.holder } }

    /// Reads the record, and asks whether the holder of its mark is running.
    ///
    /// - Parameter toReplace: Whether a sign-in or a sign-out replaces the record; then a damaged one counts as none.
    func read(toReplace: Bool = false) async throws -> SharedFlight.Sighting? {
        let sighting = try await performOperation { [self] store -> SharedFlight.Sighting? in
            guard let record = try await store.load() else { return nil }
            return try await self.sighting(record, toReplace: toReplace)
        }
        noteMark(in: sighting?.record)
        return sighting
    }

    /// Replaces the record and returns the flight's event; throws if the outcome is unknown.
    func swap(
        _ record: GrantRecord, ifAt revision: SharedRecord.Revision?, toReplace: Bool = false
    ) async throws -> SharedFlight.Event {
        do {
            let event: SharedFlight.Event = try await performOperation { [self] store in
                let bytes = try coded(GrantRecordFormat.encode(record), by: sharing.seal)
                switch try await store.swap(bytes, ifAt: revision) {
                case .done(let revision): return .swapped(revision)
                case .conflict(let other) where other?.revision == revision: throw StoreContradiction()
                case .conflict(nil): return .conflict(nil)
                case .conflict(let other?): return .conflict(try await sighting(other, toReplace: toReplace))
                }
            }
            if case .conflict(let other) = event { noteMark(in: other?.record) } else { noteMark(in: record, isWritten: true) }
            return event
        } catch {
            // The write may have succeeded although its response was lost.
            if record.mark != nil { noteMark(in: record, isWritten: true) }
            throw error
        }
    }

    /// Waits until the record may have changed, at most until a time on the service's clock; returns the record if the wait has
    /// read it.
    func wait(from revision: SharedRecord.Revision?, until deadline: Duration) async -> SharedFlight.Event {
        let limit = max(deadline - clock.now(), .zero)
        do {
            let record = try await performOperation(until: deadline) { try await $0.changedRecord(from: revision, atMost: limit) }
            // If the record is unreadable, reading it again reports the reason.
            guard let record,
                let sighting = try? await performOperation({ [self] _ in try await self.sighting(record, toReplace: false) })
            else { return .waited }
            noteMark(in: sighting.record)
            return .read(sighting)
        } catch {
            // A store that can't wait is read again soon, but no more often than a flight reads that is woken without a change.
            await pause(for: min(RefreshPolicy.checkPause, max(deadline - clock.now(), .zero)))
            return .waited
        }
    }

    func pause(for duration: Duration) async { _ = await clock.hasPassed(clock.now() + duration) }

    private func sighting(_ record: SharedRecord, toReplace: Bool) async throws -> SharedFlight.Sighting {
        if let damage = record.damage {
            guard toReplace else { throw damage }
            return SharedFlight.Sighting(record: .none, revision: record.revision)
        }
        // An engine may keep the entry of a deleted record.
        let contents = record.bytes.isEmpty ? .none : try GrantRecordFormat.decode(coded(record.bytes, by: sharing.open))
        var isRunning: Bool?
        if let mark = contents.mark, mark.owner != owner, let holder = mark.holder { isRunning = await store.isRunning(holder) }
        return SharedFlight.Sighting(
            record: contents, revision: record.revision, isHolderRunning: isRunning,
            age: record.age.map(RefreshPolicy.counted), isAgeSteady: record.isAgeSteady)
    }

    private func coded(_ bytes: Data, by key: ((Data) throws -> Data)?) throws -> Data {
        do { return try key?(bytes) ?? bytes } catch { throw SealFailure(underlying: error) }
    }

    /// Performs an operation of the store, as urgently as the task that waits for it; stops waiting at the limit.
    ///
    /// - Parameter deadline: The limit of an operation that only waits, and is cancelled then. Others have 5 s, and are never
    ///   cancelled.
    private func performOperation<Value: Sendable>(
        until deadline: Duration? = nil, _ body: @escaping @Sendable (any SharedTokenStore) async throws -> Value
    ) async throws -> Value {
        let now = clock.now()
        guard let number = state.withLock({ $0.beginOperation(at: now) }) else { throw StoreTimeout() }
        let end = SingleResult<Value>(), membership = LoadMembership.current, urgency = Urgency.current
        let task = Task.detached(on: executor, priority: urgency.priority) { [self] in
            let result = await LoadMembership.$current.withValue(membership) {
                await withTaskExecutorPreference(environment.loadExecutor) { await Result { try await body(store) } }
            }
            state.withLock { _ = $0.unfinished.removeValue(forKey: number) }
            end.complete(with: result)
        }
        let limit = deadline ?? now + RefreshPolicy.storeTimeout
        let alarms = Alarms()
        alarms.wake(at: limit, on: clock, executor: environment.limitExecutor) { _ in
            end.complete(with: .failure(StoreTimeout()))
        }
        defer {
            alarms.wakeNoMore()
            if deadline != nil { task.cancel() }
        }
        return try await end.value(known: urgency) { [executor] in task.raise(to: $0, on: executor) }
    }
}

extension SharedSession {
    /// The session's knowledge of the store, and the sign-ins and sign-outs that haven't reached it.
    struct State: Sendable {
        /// How many unfinished operations a store may have since the last sign-in or sign-out, since each keeps a task; after that it
        /// gets no more until the first are forgotten.
        private static let mostUnfinished = 16

        /// When an unfinished operation is forgotten, since its callback must be lost: two minutes, as for a load by default.
        private static let patience = RefreshPolicy().loadTimeout * RefreshPolicy.timeoutsUntilForgotten

        var knowledge = SharedFlight.Knowledge()
        /// The sign-in or sign-out that hasn't reached the store yet; no flight may overtake it.
        var fence: SharedFence?
        /// Counts sign-ins, sign-outs and overtaken sessions; what a flight learnt before one of them is outdated.
        var fences = 0
        /// The grants that fences displaced, until they are handed over.
        var displaced: [DiscardedGrant] = []
        /// The last token that a sign-in or a sign-out has found in the record and hands over.
        var found: AccessToken?
        /// The session that another service has ended, as found by a sign-in here, until this service is notified.
        var end: SessionEnd?
        /// The last sign-out in the record that came after this service's sign-in or sign-out and before its retry, until the
        /// service is notified.
        var overtaken: UInt64?
        /// The marks that are being taken back.
        var strays: [StrayMark] = []
        /// When the store's unfinished operations began, including those that are no longer awaited.
        var unfinished: [Int: Duration] = [:]
        var operations = 0
        /// Whether the user has asked to try again.
        var isRetry = false
        /// Until when others respect this service's mark, as far as this service knows; zero: it has none; `nil`: without a limit.
        var markEnd: Duration? = .zero

        /// Returns the number of an operation of the store that begins now; `nil` if too many are unfinished.
        fileprivate mutating func beginOperation(at now: Duration) -> Int? {
            if unfinished.count >= Self.mostUnfinished { unfinished = unfinished.filter { now < $0.value + Self.patience } }
            guard unfinished.count < Self.mostUnfinished else { return nil }
            operations += 1
            unfinished[operations] = now
            return operations
        }

        /// Notes that the last fence, or an earlier one, may not have been written over this record.
        mutating func noteAttempt(of last: SharedFence, over record: GrantRecord?) {
            fence?.heed(last)
            // The token is handed out anyway, so there is a session that a later sign-out ends.
            guard last.token != nil else { return }
            knowledge.signedOut = max(knowledge.signedOut ?? 0, record?.signedOut ?? 0)
            knowledge.meet(record)
        }

        /// Notes that the fence is in the record; if another service's has overtaken it, returns the record's last sign-out.
        mutating func settle(_ fence: SharedFence, by record: GrantRecord?) -> UInt64? {
            if let record, record.fence == fence.id {
                knowledge.take(record, isRenewed: !fence.stands(in: record))
                return nil
            }
            // The record's session belongs to another service.
            (knowledge.session, knowledge.unmarked) = (nil, nil)
            // A flight that reads a later sign-out than this one ends the session.
            return fence.token == nil && knowledge.hasNews(record) ? nil : record?.signedOut ?? 0
        }

        /// Returns, once, which session another service has ended; the service now ends it here.
        mutating func takeEnd() -> SessionEnd? {
            defer { (end, overtaken) = (nil, nil) }
            guard let overtaken else { return end }
            // The knowledge of running flights is about that session.
            fences += 1
            knowledge.overtaken(signedOut: overtaken)
            return .overtaken
        }
    }
}
