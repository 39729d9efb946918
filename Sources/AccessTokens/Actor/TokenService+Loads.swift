import TokenServiceConcurrency

extension TokenService {
    /// Work whose tasks may ask a service for a token.
    enum Work: Equatable {
        case flight(Int)
        case operation(Int)
    }

    /// A load that has not ended.
    struct RunningLoad {
        let flight: Int
        let task: Task<Void, Never>
        var priority: TaskPriority
    }

    /// Starts a load in a task of its own, which keeps the service alive until it ends.
    ///
    /// Detached: no caller's task-locals or cancellation reach it. Registered before anything suspends: a second caller
    /// finds it. Only the loader runs on its executor, so that nothing else ever waits behind it.
    func start(_ flight: Machine.Flight) {
        if let session { return share(flight, by: session) }
        let priority = max(Task.currentPriority, lobby.withLock { $0.urgency })
        let membership = self.membership(of: .flight(flight.id))
        let task = Task.detached(on: executor, priority: priority) { [loader, loadExecutor, clock] in
            let result = await LoadMembership.$current.withValue(membership) {
                await Result {
                    guard let loadExecutor else { return try await loader.loadToken(of: flight, for: membership, clock) }
                    return try await withTaskExecutorPreference(loadExecutor) {
                        try await loader.loadToken(of: flight, for: membership, clock)
                    }
                }
            }
            await self.finish(flight.id, with: result)
        }
        loads.append(RunningLoad(flight: flight.id, task: task, priority: priority))
    }

    private func finish(_ flight: Int, with result: Result<AccessToken, any Error>) {
        loads.removeAll { $0.flight == flight }
        switch result {
        case .success(let token): step { $0.loaded(token, by: flight, at: $1) }
        case .failure(let error):
            let salvaged = (error as? SalvagedGrant)?.grant
            let (wrapped, retryAfter) = TokenServiceError.wrapping(error)
            step { machine, now in
                // The load hasn't failed, it began too late: callers get the time-out.
                if error is NotSent { machine.elapse(to: now) }
                machine.failed(wrapped, salvaged: salvaged, retryAfter: retryAfter, by: flight, at: now)
            }
        }
    }

    /// The membership that the tasks of a flight or an operation carry while something may wait for it.
    func membership(of work: Work) -> LoadMembership {
        if let (_, membership) = memberships.first(where: { $0.work == work }) { return membership }
        let membership = LoadMembership(of: self)
        memberships.append((work, membership))
        return membership
    }

    /// Nothing waits any longer for flights that are not the current one, or that have stalled, nor for a store that is late.
    func endMemberships() {
        guard !memberships.isEmpty else { return }
        let flight = machine.state.runningFlight.map { Work.flight($0.id) }
        let operation = machine.storage.isLate ? nil : machine.storage.operations.first.map { Work.operation($0.id) }
        for (work, membership) in memberships where work != flight && work != operation { membership.end() }
        memberships.removeAll { $0.membership.hasEnded }
    }

    /// Cancels a load from outside the actor: its handlers are the loader's own code, and may be slow.
    func cancel(_ flight: Int) {
        guard let task = loads.first(where: { $0.flight == flight })?.task else { return }
        Task.detached(on: executor) { task.cancel() }
    }

    /// Gives a grant to the program, to be revoked.
    func discard(_ grant: DiscardedGrant) {
        guard let onDiscard else { return }
        Task.detached(on: loadExecutor) { await onDiscard(grant) }
    }

    /// A caller that is more urgent than the load makes the load as urgent.
    func raisePriority(to priority: TaskPriority) {
        guard let flight = machine.state.flight?.id, let index = loads.firstIndex(where: { $0.flight == flight }),
            loads[index].priority < priority
        else { return }
        loads[index].priority = priority
        let load = loads[index]
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            load.task.escalatePriority(to: priority)
        } else {
            // A task that awaits another lends it its priority; this one ends with the load.
            Task.detached(on: executor, priority: priority) { await load.task.value }
        }
    }
}

extension TokenLoader {
    /// Loads, unless the load was given up before its turn came on its executor: an old grant must not be used any more.
    @concurrent fileprivate func loadToken(
        of flight: TokenService.Machine.Flight, for membership: LoadMembership, _ clock: ServiceClock
    ) async throws -> AccessToken {
        // The machine may have slept meanwhile: a load that nothing waits for spends nothing.
        guard clock.now() < flight.deadline else { throw NotSent() }
        guard !membership.hasEnded else { throw CancellationError() }
        return try await loadToken(replacing: flight.previous)
    }
}

extension TokenServiceError {
    /// What callers get for what a loader threw, and when the server wishes to be asked again.
    static func wrapping(_ error: any Error) -> (TokenServiceError, retryAfter: Duration?) {
        let cause = (error as? SalvagedGrant)?.reason ?? error
        let failure = cause as? any TokenLoadFailure
        // Another service's sign-out is over when its user has signed in again, which this one isn't told.
        let isForeignReset = (cause as? TokenServiceError)?.code == .reset
        let remedy = isForeignReset ? .retry : failure?.remedy ?? .retry
        return (TokenServiceError(.loadFailed, underlying: cause, remedy: remedy), failure?.retryAfter)
    }
}

extension Result where Failure == any Error {
    /// The outcome of an asynchronous call.
    init(_ call: () async throws -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}
