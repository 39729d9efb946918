import TokenServiceConcurrency

extension TokenService {
    /// A load that has not ended.
    struct RunningLoad {
        let flight: Int
        let task: Task<Void, Never>
    }

    /// Starts a load in a task of its own, which keeps the service alive until it ends.
    ///
    /// Detached: no caller's task-locals or cancellation reach it. Registered before anything suspends: a second caller
    /// finds it. Only the loader runs on its executor, so that nothing else ever waits behind it.
    func start(_ flight: Machine.Flight) {
        if let session { return share(flight, by: session) }
        let priority = max(Task.currentPriority, lobby.withLock { $0.urgency })
        let membership = membershipOfFlight(flight.id)
        let task = Task.detached(on: executor, priority: priority) {
            let result = await LoadMembership.$current.withValue(membership) {
                await Result {
                    guard let loadExecutor = self.loadExecutor else {
                        return try await self.loadToken(of: flight, for: membership)
                    }
                    return try await withTaskExecutorPreference(loadExecutor) {
                        try await self.loadToken(of: flight, for: membership)
                    }
                }
            }
            await self.finish(flight.id, with: result)
        }
        begun(task, for: flight, priority: priority)
    }

    /// A load runs from now on, until it is taken out of ``loads``.
    func begun(_ task: Task<Void, Never>, for flight: Machine.Flight, priority: TaskPriority) {
        loads.append(RunningLoad(flight: flight.id, task: task))
        loadPriority = priority
    }

    /// Loads, unless the load was given up before its turn came on its executor: an old grant must not be used any more.
    @concurrent private nonisolated func loadToken(
        of flight: Machine.Flight, for membership: LoadMembership
    ) async throws -> AccessToken {
        // The machine may have slept meanwhile: a load that nothing waits for spends nothing.
        guard clock.now() < flight.deadline else { throw NotSent() }
        guard !membership.hasEnded else { throw CancellationError() }
        return try await loader.loadToken(replacing: flight.previous)
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

    /// The membership that the tasks of the current flight carry while something may wait for it.
    func membershipOfFlight(_ id: Int) -> LoadMembership {
        if let flightMembership, flightMembership.work == id { return flightMembership }
        let membership = LoadMembership(of: self, work: id)
        flightMembership = membership
        return membership
    }

    /// The same for a store's operation, which may be a part of the flight.
    func membership(of operation: StoreQueue.Operation) -> LoadMembership {
        if let flight = operation.flight, flight == machine.state.flightID { return membershipOfFlight(flight) }
        let membership = LoadMembership(of: self, work: operation.id)
        operationMembership = membership
        return membership
    }

    /// Nothing waits any longer for a flight that isn't the current one, or that has stalled, nor for a store that is late.
    func endMemberships() {
        if let flightMembership, machine.state.isStalled || flightMembership.work != machine.state.flightID {
            flightMembership.end()
            self.flightMembership = nil
        }
        if let operationMembership, machine.storage.isLate || operationMembership.work != machine.storage.operations.first?.id {
            operationMembership.end()
            self.operationMembership = nil
        }
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
        guard loadPriority < priority, let load = loads.last, load.flight == machine.state.flightID else { return }
        loadPriority = priority
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            load.task.escalatePriority(to: priority)
        } else {
            // A task that awaits another lends it its priority; this one ends with the load.
            Task.detached(on: executor, priority: priority) { await load.task.value }
        }
    }
}

/// The load's time was over before its turn came: nothing has been sent.
package struct NotSent: Error, CustomStringConvertible {
    package let description = "The load was given up before it could begin."
}

extension TokenServiceError {
    /// What callers get for what a loader threw, and when the server wishes to be asked again.
    package static func wrapping(_ error: any Error) -> (TokenServiceError, retryAfter: Duration?) {
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
    package init(_ call: () async throws -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}
