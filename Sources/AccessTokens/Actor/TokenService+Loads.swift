import TokenServiceConcurrency

extension TokenService {
    /// Starts a load in a task of its own, which keeps the service alive until it ends.
    ///
    /// Detached: no caller's task-locals or cancellation reach it. Registered before anything suspends: a second caller
    /// finds it. Only the loader runs on its executor, so that nothing else ever waits behind it.
    func start(_ flight: Machine.Flight) {
        let priority = max(Task.currentPriority, lobby.withLock { $0.urgency })
        let membership = self.membership(of: .flight(flight.id))
        let task = Task.detached(executorPreference: executor, priority: priority) { [loader, loadExecutor] in
            let result = await LoadMembership.$current.withValue(membership) {
                await Result {
                    try await withTaskExecutorPreference(loadExecutor) {
                        try await loader.loadToken(replacing: flight.previous, unlessEnded: membership)
                    }
                }
            }
            await self.finish(flight.id, with: result)
        }
        loads[flight.id] = RunningLoad(task: task, priority: priority)
    }

    private func finish(_ flight: Int, with result: Result<AccessToken, any Error>) {
        loads[flight] = nil
        switch result {
        case .success(let token): step { $0.loaded(token, by: flight, at: $1) }
        case .failure(let error):
            let salvaged = (error as? SalvagedGrant)?.grant
            let cause = (error as? SalvagedGrant)?.reason ?? error
            let failure = cause as? any TokenLoadFailure
            // Another service's sign-out is over when its user has signed in again, which this one isn't told.
            let isForeignReset = (cause as? TokenServiceError)?.code == .reset
            let remedy = isForeignReset ? .retry : failure?.remedy ?? .retry
            let wrapped = TokenServiceError(.loadFailed, underlying: cause, remedy: remedy)
            step { $0.failed(wrapped, salvaged: salvaged, retryAfter: failure?.retryAfter, by: flight, at: $1) }
        }
    }

    /// The membership that the tasks of a flight or an operation carry while something may wait for it.
    func membership(of work: Work) -> LoadMembership {
        let membership = memberships[work] ?? LoadMembership(of: self)
        memberships[work] = membership
        return membership
    }

    /// Nothing waits any longer for flights that are not the current one, or that have stalled, nor for a store that is late.
    func endMemberships() {
        guard !memberships.isEmpty else { return }
        let flight = machine.state.runningFlight.map { Work.flight($0.id) }
        let operation = machine.storage.isLate ? nil : machine.storage.operations.first.map { Work.operation($0.id) }
        for (work, membership) in memberships where work != flight && work != operation {
            membership.end()
            memberships[work] = nil
        }
    }

    /// Cancels a load from outside the actor: its handlers are the loader's own code, and may be slow.
    func cancel(_ flight: Int) {
        guard let task = loads[flight]?.task else { return }
        Task.detached(executorPreference: executor) { task.cancel() }
    }

    /// Gives a grant to the program, to be revoked.
    func discard(_ grant: DiscardedGrant) {
        guard let onDiscard else { return }
        Task.detached(executorPreference: loadExecutor) { await onDiscard(grant) }
    }

    /// A caller that is more urgent than the load makes the load as urgent.
    func raisePriority(to priority: TaskPriority) {
        guard let flight = machine.state.flight?.id, let load = loads[flight], load.priority < priority else { return }
        loads[flight]?.priority = priority
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            load.task.escalatePriority(to: priority)
        } else {
            // A task that awaits another lends it its priority; this one ends with the load.
            Task.detached(executorPreference: executor, priority: priority) { await load.task.value }
        }
    }
}

extension TokenLoader {
    /// Loads, unless the load was given up before its turn came on its executor: an old grant must not be used any more.
    @concurrent fileprivate func loadToken(
        replacing previous: AccessToken?, unlessEnded membership: LoadMembership
    ) async throws -> AccessToken {
        guard !membership.hasEnded else { throw CancellationError() }
        return try await loadToken(replacing: previous)
    }
}

extension Result where Failure == any Error {
    /// The outcome of an asynchronous call.
    init(_ call: () async throws -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}
