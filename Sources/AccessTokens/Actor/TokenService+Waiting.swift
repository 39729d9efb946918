extension TokenService {
    typealias Place = Lobby<Waiter>.Place

    /// What a caller finds that has no token yet: an answer, or a place among those who wait for a load.
    private enum Joining {
        case answer(AccessToken)
        case place(Place)
    }

    /// The way of a call that finds no valid token.
    @usableFromInline
    nonisolated(nonsending) func join(seen generation: Int) async throws -> AccessToken {
        switch try await joinOrAsk(seen: generation, until: nil) {
        case .answer(let token): return token
        case .place(let place): return try await wait(at: place)
        }
    }

    /// The same with a limit, which counts from here.
    @usableFromInline
    nonisolated(nonsending) func join(seen generation: Int, within limit: Duration) async throws -> AccessToken {
        let deadline = clock.now() + min(max(limit, .zero), RefreshPolicy.longestLifetime)
        switch try await joinOrAsk(seen: generation, until: deadline) {
        case .answer(let token): return token
        case .place(let place):
            wake(at: deadline)
            return try await wait(at: place)
        }
    }

    /// A place in the lobby, if there is a load to join; else what the actor says.
    ///
    /// Not inlined, nor is what it calls: their variables would be part of the frame that every waiter keeps.
    @inline(never)
    private nonisolated(nonsending) func joinOrAsk(seen generation: Int, until deadline: Duration?) async throws -> Joining {
        try Task.checkCancellation()
        let now = clock.now(), priority = Task.currentPriority
        if let deadline, deadline <= now { throw TokenServiceError(.deadlineExceeded) }
        try beginWaiting()
        if let place = lobby.withLock({ $0.join(seen: generation, priority: priority, until: deadline, at: now) }) {
            return .place(place)
        }
        do {
            let joining = try await visit { try $0.askActor(seen: generation, until: deadline) }
            if case .answer = joining { endWaiting() }
            return joining
        } catch {
            endWaiting()
            throw error
        }
    }

    @inline(never)
    private func askActor(seen generation: Int, until deadline: Duration?) throws -> Joining {
        // Whoever has left on the way, or ran out of time, starts nothing.
        try Task.checkCancellation()
        if let deadline, deadline <= clock.now() { throw TokenServiceError(.deadlineExceeded) }
        let priority = Task.currentPriority
        let joining: Result<Joining, TokenServiceError> = step { machine, now in
            machine.retrieve(seen: generation, at: now)
        } admission: { result, lobby in
            result?.map { .answer($0) } ?? .success(.place(lobby.admit(priority: priority, until: deadline)))
        }
        if case .success(.place) = joining { raisePriority(to: priority) }
        return try joining.mapError { dated($0, at: clock.now()) }.get()
    }

    /// Who has a place must come here: it stays taken until its caller has seen its answer.
    private nonisolated(nonsending) func wait(at place: Place) async throws -> AccessToken {
        defer { endWaiting() }
        return try await withTaskCancellationHandler {
            try await CallerContinuation.suspend { continuation in
                let answer = lobby.withLock { $0.suspend(.caller(continuation), at: place) }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            leave(place, with: CancellationError())
        }
    }

    private nonisolated func leave(_ place: Place, with error: any Error) {
        lobby.withLock { $0.leave(place, with: .failure(error)) }?.resume(with: .failure(error))
    }
}

extension TokenService {
    /// Comes in to the actor, never on an executor that foreign code may block.
    ///
    /// A default actor runs where the task that visits it prefers to run. If caller A prefers an executor whose only thread is
    /// busy, its visit waits there, and everything behind it: caller B on the pool, and the alarm that would end B's wait. So a
    /// task with a preference of its own visits on the service's executor, and returns to its own afterwards.
    nonisolated(nonsending) func visit<Outcome: Sendable>(
        _ body: @Sendable (isolated TokenService) throws -> Outcome
    ) async rethrows -> Outcome {
        guard prefersForeignExecutor else { return try await body(self) }
        return try await withTaskExecutorPreference(executor ?? globalConcurrentExecutor) { try await body(self) }
    }

    private nonisolated var prefersForeignExecutor: Bool {
        unsafe withUnsafeCurrentTask { task in
            guard let preferred = unsafe task?.unownedTaskExecutor else { return false }
            return executor.map { unsafe preferred != $0.asUnownedTaskExecutor() } ?? true
        }
    }
}
