import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a service keeps of the grant that it shares: the way to the store, and the sign-ins and sign-outs that it has yet to hear of.
///
/// To the service it is a token store like another for `reset` and `replace`. Loads go by ``SharedFlight`` instead.
final class SharedSession: TokenStore {
    private struct State {
        var knowledge = SharedFlight.Knowledge()
        /// The sign-in or sign-out that the store has yet to hear of: the last word, which no flight may overtake.
        var fence: SharedFence?
        /// How many sign-ins and sign-outs there were.
        var fences = 0
        /// What fences have put aside, until it is handed over.
        var displaced: [DiscardedGrant] = []
        /// The marks that are being taken back.
        var strays: [StrayMark] = []
        /// How many of the store's operations have not ended, though nothing may wait for them any longer.
        var unfinished = 0
        var isRetry = false
        /// This service's mark, if it stands in the record as far as is known, and since when.
        var mark: (mark: GrantRecord.Mark, since: Duration)?
    }

    /// A store that doesn't answer gets no more operations than these: each keeps a task.
    private static let unfinishedOperations = 16

    let sharing: TokenSharing
    let owner = String(UInt64.random(in: .min ... .max), radix: 36)
    private let store: any SharedTokenStore
    private let clock: ServiceClock
    private let wallClock: @Sendable () -> Date
    private let executor: (any TaskExecutor)?
    private let loadExecutor: (any TaskExecutor)?
    private let state = Lock(State())
    private let line = TurnLine()

    init(_ store: any SharedTokenStore, _ sharing: TokenSharing, clock: ServiceClock, environment: TokenService.Environment) {
        self.store = store
        self.sharing = sharing
        self.clock = clock
        wallClock = environment.wallClock
        executor = environment.ownExecutor
        loadExecutor = environment.loadExecutor
    }

    /// The store's name for this process; it may have to look into a file for that.
    func holder() async -> String? {
        (try? await within(RefreshPolicy.storeTimeout) { [store] in await store.holder }.get()) ?? nil
    }

    /// What a flight begins with, and the number of fences by then.
    var beginning: (knowledge: SharedFlight.Knowledge, fences: Int, strays: [StrayMark]) {
        state.withLock { ($0.knowledge, $0.fences, $0.strays) }
    }

    /// Keeps what a flight has learnt, beside what others have; the record's generation only if no fence has come since it began.
    func learn(_ knowledge: SharedFlight.Knowledge, since fences: Int) {
        state.withLock { state in
            let before = state.knowledge
            state.knowledge = knowledge
            state.knowledge.writes = max(before.writes, knowledge.writes)
            let isFenced = state.fences != fences
            state.knowledge.generation = isFenced ? before.generation : later(before.generation, knowledge.generation)
            state.knowledge.seen = isFenced ? before.seen : later(before.seen, knowledge.seen)
        }
    }

    private func later(_ a: UInt64?, _ b: UInt64?) -> UInt64? { [a, b].compactMap { $0 }.max() }

    func note(_ stray: StrayMark) { state.withLock { $0.strays.append(stray) } }
    func forget(_ stray: StrayMark) { state.withLock { $0.strays.removeAll { $0.write == stray.write } } }

    /// A person asked to try again: the next flight ignores the fleet's failures.
    func noteRetry() { state.withLock { $0.isRetry = true } }

    func takeRetry() -> Bool {
        state.withLock { state in
            defer { state.isRetry = false }
            return state.isRetry
        }
    }

    /// From when on nothing is lost with the service; `nil`: not before the store has heard of the last sign-in or sign-out.
    ///
    /// While its mark stands it may go on at once. A service in its place would be another owner, and wait as the others do.
    var restsFrom: Duration? {
        let (fence, mark) = state.withLock { ($0.fence, $0.mark) }
        guard fence == nil else { return nil }
        return mark.map { mark in sharing.doubt.patience(with: mark.mark).map { mark.since + $0 } } ?? .zero
    }

    private func noteMark(in record: GrantRecord?, isWritten: Bool = false) {
        let now = clock.now()
        state.withLock { state in
            let mark = record?.mark.flatMap { $0.owner == owner ? $0 : nil }
            state.mark = mark.map { ($0, isWritten ? now : state.mark?.since ?? now) }
        }
    }

    // MARK: Fences

    /// A sign-in or a sign-out takes effect; every flight that begins from now on writes it first, if nothing else has.
    func note(_ token: StoredToken?, number: Int) {
        state.withLock { state in
            state.fence = SharedFence(token, number: number, owner: owner, after: state.fence)
            state.fences += 1
        }
    }

    /// Writes the last sign-in or sign-out, if the store has yet to hear of it.
    func settle() async throws {
        try await line.turn {
            while let fence = state.withLock({ $0.fence }) {
                let displaced = try await write(fence)
                state.withLock { state in
                    state.displaced += displaced
                    if state.fence?.number == fence.number { state.fence = nil } else { state.fence?.followsSettled() }
                }
            }
        }
    }

    /// Puts a token or a tombstone in the record's place, of a higher generation; returns what that has put aside.
    private func write(_ fence: SharedFence) async throws -> [DiscardedGrant] {
        var fence = fence
        var sighting = try await read().get()
        for _ in 0..<1_000 {
            let record = sighting?.record
            guard case .write(let next) = fence.verdict(on: record, seen: beginning.knowledge.seen, wall: wall) else { break }
            switch await swap(next, ifAt: sighting?.revision) {
            case .swapped:
                take(next)
                return fence.displaced(in: record)
            case .conflict(let other): sighting = other
            case .storeFailed(let failure):
                // It may have been written all the same.
                fence.noteAttempt(over: record)
                keep(fence)
                sighting = try await read().get()
                guard sighting?.record.fence == fence.id else { throw failure.error.underlying ?? failure.error }
            default: break
            }
        }
        let record = sighting?.record
        guard case .settled(let displaced) = fence.verdict(on: record, seen: nil, wall: nil) else { throw StoreContention() }
        if let record, fence.stands(in: record) { take(record) }
        return displaced
    }

    private func keep(_ fence: SharedFence) {
        state.withLock { state in
            if state.fence?.number == fence.number {
                state.fence = fence
            } else {
                state.fence?.follow(fence)
            }
        }
    }

    /// The fence stands in the store: the service has what the record has.
    private func take(_ record: GrantRecord) {
        state.withLock { state in
            state.knowledge.generation = record.generation
            state.knowledge.seen = max(state.knowledge.seen ?? 0, record.generation)
        }
    }

    /// What fences have put aside, to be handed over; once.
    func takeDisplaced() -> [DiscardedGrant] {
        state.withLock { state in
            defer { state.displaced = [] }
            return state.displaced
        }
    }

    @concurrent func load() async throws -> StoredToken? { nil }
    @concurrent func save(_ token: StoredToken) async throws { try await settle() }
    @concurrent func remove() async throws { try await settle() }

    // MARK: The store

    private var wall: Double? {
        let wall = wallClock().timeIntervalSinceReferenceDate
        return wall.isFinite ? wall : nil
    }

    /// Reads the record, and asks whether the holder of its mark is running.
    func read() async -> Result<SharedFlight.Sighting?, any Error> {
        let result: Result<SharedFlight.Sighting?, any Error> = await within(RefreshPolicy.storeTimeout) { [self] in
            guard let record = try await store.load() else { return nil }
            return try await sighting(record)
        }
        if case .success(let sighting) = result { noteMark(in: sighting?.record) }
        return result
    }

    /// The same as an event of a flight.
    func look() async -> SharedFlight.Event {
        switch await read() {
        case .success(let sighting): .read(sighting)
        case .failure(let error): .storeFailed(.store(error))
        }
    }

    func swap(_ record: GrantRecord, ifAt revision: SharedRecord.Revision?) async -> SharedFlight.Event {
        let result: Result<SharedFlight.Event, any Error> = await within(RefreshPolicy.storeTimeout) { [self] in
            let bytes = try GrantRecordFormat.encode(record)
            switch try await store.swap(try sealed(bytes), ifAt: revision) {
            case .done(let revision): return .swapped(revision)
            case .conflict(nil): return .conflict(nil)
            case .conflict(let other?): return .conflict(try await sighting(other))
            }
        }
        switch result {
        case .success(let event):
            if case .conflict(let other) = event { noteMark(in: other?.record) } else { noteMark(in: record, isWritten: true) }
            return event
        case .failure(let error):
            // It may stand there all the same.
            if record.mark != nil { noteMark(in: record, isWritten: true) }
            return .storeFailed(.store(error))
        }
    }

    /// Waits until the record may have changed, at most until a time on the service's clock.
    func wait(from revision: SharedRecord.Revision?, until deadline: Duration) async {
        let end = SingleResult<Void>()
        let limit = max(deadline - clock.now(), .zero)
        guard begin() else { return await pause(for: min(limit, .seconds(1))) }
        let wait = Task.detached(on: executor) { [self] in
            await withTaskExecutorPreference(loadExecutor) {
                // A store that can't wait is asked again at the limit.
                if (try? await store.waitForChange(from: revision, atMost: limit)) != nil { end.complete(with: .success(())) }
            }
            self.ended()
        }
        let timer = sleep(until: deadline) { end.complete(with: .success(())) }
        try? await end.value()
        wait.cancel()
        timer.cancel()
    }

    func pause(for duration: Duration) async {
        _ = await clock.hasPassed(clock.now() + duration)
    }

    private func sighting(_ record: SharedRecord) async throws -> SharedFlight.Sighting {
        // An engine may keep the place of a record that was deleted.
        let contents = record.bytes.isEmpty ? .none : try GrantRecordFormat.decode(try opened(record.bytes))
        var isRunning: Bool?
        if let mark = contents.mark, mark.owner != owner, let holder = mark.holder { isRunning = await store.isRunning(holder) }
        return SharedFlight.Sighting(
            record: contents, revision: record.revision, isHolderRunning: isRunning,
            age: record.age.map { min(max($0, .zero), RefreshPolicy.longestLifetime) })
    }

    private func sealed(_ bytes: Data) throws -> Data {
        do { return try sharing.seal.map { try $0(bytes) } ?? bytes } catch { throw SealFailure(underlying: error) }
    }

    private func opened(_ bytes: Data) throws -> Data {
        do { return try sharing.open.map { try $0(bytes) } ?? bytes } catch { throw SealFailure(underlying: error) }
    }

    private func sleep(until deadline: Duration, _ body: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task.detached(on: executor) { [clock] in if await clock.hasPassed(deadline) { body() } }
    }

    /// Whether the store gets another operation.
    private func begin() -> Bool {
        state.withLock { state in
            guard state.unfinished < Self.unfinishedOperations else { return false }
            state.unfinished += 1
            return true
        }
    }

    private func ended() { state.withLock { $0.unfinished -= 1 } }

    /// Performs an operation of the store that is never cancelled; after the limit nothing waits for it.
    private func within<Value: Sendable>(
        _ limit: Duration, _ body: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        let end = SingleResult<Value>(), membership = LoadMembership.current
        guard begin() else { return .failure(StoreTimeout()) }
        Task.detached(on: executor) { [self] in
            let result = await LoadMembership.$current.withValue(membership) {
                await withTaskExecutorPreference(loadExecutor) { await Result { try await body() } }
            }
            ended()
            end.complete(with: result)
        }
        let timer = sleep(until: clock.now() + limit) { end.complete(with: .failure(StoreTimeout())) }
        defer { timer.cancel() }
        return await Result { try await end.value() }
    }
}

/// A thousand swaps in a row found another record than the one before.
struct StoreContention: Error, CustomStringConvertible {
    let description = "The shared store's record changed before each of a thousand attempts to replace it."
}
