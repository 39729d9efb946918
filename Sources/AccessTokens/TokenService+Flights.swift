extension TokenService {
    /// Starts a load in a task of its own, which keeps the service alive until it ends.
    ///
    /// Detached: no caller's task-locals or cancellation reach it. Registered before anything suspends: a second caller
    /// finds it.
    func start(_ flight: Machine.Flight, replacing previous: AccessToken?) {
        let priority = max(Task.currentPriority, lobby.withLock { $0.urgency })
        let mark = LoadMark(of: self)
        let marks = LoadMark.current + [mark]
        let task = Task.detached(executorPreference: executor, priority: priority) { [loader] in
            let result = await LoadMark.$current.withValue(marks) {
                await Result {
                    // Fenced off before it began: the old grant must not be used any more.
                    try Task.checkCancellation()
                    return try await loader.loadToken(replacing: previous)
                }
            }
            mark.end()
            await self.finish(flight.id, with: result)
        }
        loads[flight.id] = RunningLoad(task: task, priority: priority)
        startTimer(for: flight)
    }

    /// Makes sure that some event comes when the flight's limit has passed.
    func startTimer(for flight: Machine.Flight) {
        timers[flight.id] = Task.detached(executorPreference: executor) { [clock] in
            guard await clock.hasPassed(flight.deadline) else { return }
            await self.step { $0.elapse(to: max($1, flight.deadline)) }
        }
    }

    private func finish(_ flight: Int, with result: Result<AccessToken, any Error>) {
        loads[flight] = nil
        timers.removeValue(forKey: flight)?.cancel()
        switch result {
        case .success(let token): step { $0.loaded(token, by: flight, at: $1) }
        case .failure(let error):
            let failure = error as? any TokenLoadFailure
            let wrapped = TokenServiceError(.loadFailed, underlying: error, remedy: failure?.remedy ?? .retry)
            step { $0.failed(wrapped, retryAfter: failure?.retryAfter, by: flight, at: $1) }
        }
    }

    /// Whether the current task is part of a load of this service, and so would wait for itself.
    package nonisolated var isAwaitedByThisTask: Bool {
        LoadMark.current.contains { $0.isLoad(of: self) }
    }

    /// How many fences there have been.
    package var generation: Int { machine.generation }

    /// A caller that is more urgent than the load makes the load as urgent.
    func raisePriority(to priority: TaskPriority) {
        guard let flight = machine.state.flight?.id, let load = loads[flight], load.priority < priority else { return }
        loads[flight]?.priority = priority
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            load.task.escalatePriority(to: priority)
        } else {
            // Whoever awaits a task lends it its priority; this one ends with the load.
            Task.detached(executorPreference: executor, priority: priority) { await load.task.value }
        }
    }
}

extension Result where Failure == any Error {
    /// The outcome of an asynchronous call.
    init(_ call: () async throws -> Success) async {
        do { self = .success(try await call()) } catch { self = .failure(error) }
    }
}
