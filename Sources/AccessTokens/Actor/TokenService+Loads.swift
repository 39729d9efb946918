import Synchronization
package import TokenServiceConcurrency

extension TokenService {
    /// The part of the current flight whose priority can be raised: its load, or its store operation.
    struct RunningLoad {
        let flight: Int
        let task: Task<Void, any Error>
        var urgency: Urgency
        /// The loader's task, once it runs, if the grant is shared; of such a load only this part can be cancelled.
        var loader: Task<AccessToken, any Error>?
    }

    /// Starts a load in its own task, which keeps the service alive until it ends.
    ///
    /// Detached: it inherits no caller's task-locals or cancellation. Registered before anything suspends, so that a second
    /// caller finds it. Only the loader runs on the loader's executor, so that nothing else ever waits behind it.
    ///
    /// - Parameter urgency: No less than the lobby's: callers of that urgency join without entering the actor.
    func start(_ flight: Machine.FlightStart, urgency: Urgency) {
        if let ties, let session = ties.session { return share(by: session, urgency: urgency) }
        let membership = membershipOfFlight(flight.id)
        let (id, previous, deadline) = (flight.id, flight.previous, flight.deadline)
        let task = Task.detached(on: loadStart, priority: urgency.priority) {
            // The result is passed on, not kept: to release it here, the task would leave the actor again.
            await self.endLoad(
                id,
                // One closure: each awaiting function would need its own frame.
                with: LoadMembership.$current.withValue(membership) {
                    do {
                        guard let loadExecutor = self.loadExecutor else {
                            try self.checkThatLoadIsWanted(until: deadline, for: membership)
                            return .success(try await self.loader.loadToken(replacing: previous))
                        }
                        return .success(
                            try await withTaskExecutorPreference(loadExecutor) {
                                try self.checkThatLoadIsWanted(until: deadline, for: membership)
                                return try await self.loader.loadToken(replacing: previous)
                            })
                    } catch {
                        return .failure(error)
                    }
                })
        }
        begin(RunningLoad(flight: id, task: task, urgency: urgency))
    }

    /// Registers a load that starts; one that a fence cut off stays known until it ends, so that it can be cancelled.
    func begin(_ next: RunningLoad) {
        if let load, machine.fenced.contains(where: { $0.id == load.flight }) { fencedLoads.append(load) }
        setLoad(next)
    }

    func setLoad(_ load: RunningLoad?) {
        // Swapped, not assigned: if an access released the old one, every access would be checked at run time.
        var load = load
        swap(&self.load, &load)
    }

    func forgetLoad(of flight: Int) {
        if load?.flight == flight { setLoad(nil) }
        if !fencedLoads.isEmpty { fencedLoads.removeAll { $0.flight == flight } }
    }

    /// Throws if the load was given up before its turn came on its executor: an old grant must not be used any more.
    private nonisolated func checkThatLoadIsWanted(until deadline: Duration, for membership: LoadMembership) throws {
        // The computer may have slept meanwhile; a load that nothing waits for must not spend a grant.
        guard clock.now() < deadline else { throw NotSent() }
        guard !membership.hasEnded else { throw CancellationError() }
    }

    /// Whether the service is drained and no caller waits, so that a load still waiting for its turn doesn't begin.
    package nonisolated var isDeserted: Bool { lobby.withLock { $0.isDeserted } }

    private func endLoad(_ flight: Int, with result: consuming Result<AccessToken, any Error>) {
        forgetLoad(of: flight)
        switch consume result {
        case .success(let token): step { $0.ended(.loaded(token), by: flight, at: $1) }
        case .failure(is LoadDeserted): step { $0.ended(.gaveUp, by: flight, at: $1) }
        case .failure(let failure as LentGrantFailure): endLentLoad(flight, with: failure)
        case .failure(let error): failLoad(flight, with: error)
        }
    }

    private func endLentLoad(_ flight: Int, with failure: LentGrantFailure) {
        guard failure.isOutdated() else { return failLoad(flight, with: failure.cause) }
        // A sign-out may have ended the flight.
        settle()
        // The grant was replaced: start the flight's load again, with the new one.
        guard let current = machine.state.flight, current.id == flight else { return failLoad(flight, with: NotSent()) }
        start(Machine.FlightStart(current), urgency: lobby.withLock { $0.urgency })
    }

    private func failLoad(_ flight: Int, with error: any Error) {
        let failure = FlightFailure(wrapping: error)
        step { machine, now in
            // The load didn't fail but began too late: callers get the time-out error.
            if failure.isUnsent { machine.elapse(to: now) }
            machine.ended(.failed(failure), by: flight, at: now)
        }
    }

    /// Returns the membership for the tasks of the current flight, which ends when nothing can wait for the flight any longer.
    func membershipOfFlight(_ id: Int) -> LoadMembership {
        if let flightMembership, flightMembership.work == id { return flightMembership }
        let membership = LoadMembership(of: self, work: id, until: machine.state.flight?.deadline)
        flightMembership = membership
        return membership
    }

    /// Does the same for a store operation, which may be a part of the flight.
    func membership(of operation: GrantKeeper.Operation) -> LoadMembership {
        if let flight = operation.flight, flight == machine.state.flightID { return membershipOfFlight(flight) }
        let membership = LoadMembership(of: self, work: operation.id)
        operationMembership = membership
        return membership
    }

    /// Ends the memberships that nothing waits for: those of flights that aren't current or have stalled, and of late store
    /// operations.
    func endMemberships(but awaitedFlight: Int?) {
        if let flightMembership, flightMembership.work != awaitedFlight {
            flightMembership.end()
            self.flightMembership = nil
        }
        if let operationMembership, operationMembership.work != machine.keeper.awaitedOperation {
            operationMembership.end()
            self.operationMembership = nil
        }
    }

    /// Cancels a load from outside the actor: its handlers are the loader's own code, and may be slow.
    func cancel(_ flight: Int) {
        guard let load = load?.flight == flight ? load : fencedLoads.first(where: { $0.flight == flight }) else { return }
        let isShared = machine.keeper.isShared
        Task.detached(on: foreignExecutor) { isShared ? load.loader?.cancel() : load.task.cancel() }
    }

    /// Passes a grant to the program, to be revoked.
    func discard(_ grant: DiscardedGrant) {
        guard let onDiscard = ties?.onDiscard else { return }
        Task.detached(on: loadExecutor) { await onDiscard(grant) }
    }

    /// Raises the load to the urgency of a more urgent caller.
    package func raiseUrgency(to urgency: Urgency) {
        guard var load, load.urgency < urgency, load.flight == machine.state.flightID else { return }
        load.urgency = urgency
        setLoad(load)
        load.task.raise(to: urgency, on: executor)
    }
}

extension Result where Failure == any Error {
    /// The outcome of an asynchronous call.
    package init(_ call: () async throws -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}

/// Marks the tasks of a load, including its restore and its save, so that no load waits for itself.
///
/// Tasks that a loader starts inherit it and may outlive the load. It has no effect once nothing waits for the load.
package final class LoadMembership: Sendable {
    /// The load that the current task is part of.
    @TaskLocal package static var current: LoadMembership?

    /// Which loads wait for the tokens of which services, in the whole program; empty unless a loader asks a service.
    static let waits = Lock(LoadWaits())

    let service: ObjectIdentifier
    /// The number of the flight, or of the store's operation.
    let work: Int
    /// The service's clock and the load's deadline; `nil` for an operation of the store.
    private let limit: (clock: ServiceClock, deadline: Duration)?
    private let ended = Atomic<Bool>(false)
    /// When the load of a shared grant may send at the latest, if that is before its deadline.
    let sendingEnd = Lock<Duration?>(nil)

    init(of service: TokenService, work: Int, until deadline: Duration? = nil) {
        self.service = ObjectIdentifier(service)
        self.work = work
        limit = deadline.map { (service.clock, $0) }
    }

    /// Whether something waits for the load's result, and its time isn't over.
    var isInTime: Bool {
        let end = sendingEnd.withLock { $0 }
        return !hasEnded && limit.map { $0.clock.now() < min($0.deadline, end ?? $0.deadline) } ?? true
    }

    var hasEnded: Bool { ended.load(ordering: .acquiring) }

    func end() {
        ended.store(true, ordering: .releasing)
    }
}

/// A turn that one load has at a time while others wait for it, as loads of keys with a lent grant do.
package protocol LoadTurn: AnyObject, Sendable {
    /// The load that has it; `nil` if none has.
    var holder: LoadMembership? { get }
}

/// Loads that wait for a service's token or for a turn, as the edges of a graph between services; a load in a cycle would
/// deadlock.
///
/// An edge exists only while a load waits, and a waiting load keeps its service alive, so no identifier is reused meanwhile.
struct LoadWaits: Sendable {
    typealias Target = LoadMembership.Target

    /// Keyed by the service whose loads wait, so that following a chain touches no other service.
    private var waits: [ObjectIdentifier: [(membership: LoadMembership, target: Target)]] = [:]

    /// Whether this wait would close a cycle: at the end of a chain, the load would wait for itself.
    func closesCycle(_ membership: LoadMembership, waitingFor target: Target) -> Bool {
        guard !membership.hasEnded else { return false }
        var reached: Set<ObjectIdentifier> = [], frontier = [target], isFirst = true
        while let next = frontier.popLast() {
            defer { isFirst = false }
            guard reached.insert(next.id).inserted else { continue }
            switch next {
            case .service(let service):
                if service == membership.service { return true }
                for wait in waits[service] ?? [] where !wait.membership.hasEnded { frontier.append(wait.target) }
            case .turn(let turn):
                // Not for its service, which may have another load by now.
                guard let holder = turn.holder, !holder.hasEnded else { continue }
                // If it is the first one, the load's turn has come meanwhile.
                if holder === membership { return !isFirst }
                for wait in waits[holder.service] ?? [] where wait.membership === holder { frontier.append(wait.target) }
            }
        }
        return false
    }

    /// Notes that a load waits; returns `false` if it would wait for itself.
    mutating func begin(_ membership: LoadMembership, waitingFor target: Target) -> Bool {
        guard !closesCycle(membership, waitingFor: target) else { return false }
        if !membership.hasEnded { waits[membership.service, default: []].append((membership, target)) }
        return true
    }

    mutating func end(_ membership: LoadMembership, waitingFor target: Target) {
        guard
            let index = waits[membership.service]?.firstIndex(
                where: { $0.membership === membership && $0.target.id == target.id })
        else { return }
        waits[membership.service]?.remove(at: index)
        if waits[membership.service]?.isEmpty == true { waits[membership.service] = nil }
    }

    /// Whether a load of one of these services waits, or one waits for one of them.
    func contains(anyOf services: Set<ObjectIdentifier>) -> Bool {
        waits.contains { services.contains($0) || $1.contains { services.contains($0.target.id) } }
    }
}

extension LoadMembership {
    /// What a load can wait for.
    package enum Target: Sendable {
        case service(ObjectIdentifier)
        case turn(any LoadTurn)

        var id: ObjectIdentifier {
            switch self {
            case .service(let service): service
            case .turn(let turn): ObjectIdentifier(turn)
            }
        }
    }

    /// Notes that the load waits; throws if it would wait for itself.
    package func beginWaiting(for target: Target) throws(TokenServiceError) {
        guard Self.waits.withLock({ $0.begin(self, waitingFor: target) }) else {
            throw TokenServiceError(.loaderWaitsForItself)
        }
    }

    package func endWaiting(for target: Target) { Self.waits.withLock { $0.end(self, waitingFor: target) } }
}

extension TokenService {
    /// Notes that the current task, if it is part of a load, waits for this service; returns the load's membership.
    ///
    /// Not inlined: it made the caller's frame larger, and each of many callers allocate once more.
    @inline(never)
    nonisolated func beginWaiting() throws -> LoadMembership? {
        guard let membership = LoadMembership.current else { return nil }
        try membership.beginWaiting(for: .service(ObjectIdentifier(self)))
        return membership
    }

    @inline(never)
    nonisolated func endWaiting(_ membership: LoadMembership?) { membership?.endWaiting(for: .service(ObjectIdentifier(self))) }
}
