import AccessTokens

/// Handlers in the order of their calls, and the two ways they take: in to the actor, out to the queue.
///
/// Calls in a row that find no token are one *segment*: one waiter of the actor stands for all its handlers. Segments are
/// delivered from the front as they become ready, so that no handler overtakes another; many may share one dispatch.
final class CallbackLine: Sendable {
    typealias Handler = AccessTokenService.Handler
    typealias Enqueue = @Sendable (_ work: @escaping @Sendable () -> Void) -> Void
    /// Something done on the actor, at once; `finish` is told, then or later, what is to be called on the queue.
    typealias Operation =
        @Sendable (
            _ service: isolated TokenService, _ finish: @escaping @Sendable (_ call: @escaping @Sendable () -> Void) -> Void
        ) -> Void

    private let service: TokenService
    private let enqueue: Enqueue
    private let state = Lock(State())

    init(service: TokenService, enqueue: @escaping Enqueue) {
        self.service = service
        self.enqueue = enqueue
    }

    func retrieve(_ handler: @escaping Handler) {
        let call = Call(handler: handler)
        // Mostly the token is the one that the line's last call got: then it need not be copied.
        let publication = service.calmPublication()
        guard let epoch = advance({ $0.append(call, publication: publication) }) else { return }
        // After the epoch: what an operation of this line ends from now on is no hit any more.
        let seen = service.examine()
        if let token = seen.token,
            advance({ $0.append(call, token: token, publication: seen.publication, since: epoch) })
        {
            return
        }
        guard !service.isAwaitedByThisTask else {
            // Not in the line: those in front of it wait for this very load.
            return enqueue { handler(.failure(TokenServiceError(.loaderWaitsForItself))) }
        }
        let priority = Task.currentPriority
        advance { $0.append(call, generation: seen.generation, priority: priority) }
    }

    func perform(_ operation: @escaping Operation) {
        let priority = Task.currentPriority
        advance { $0.append(operation, priority: priority) }
    }

    /// Changes the state, then starts what the change made necessary, outside the lock.
    @discardableResult
    private func advance<Outcome: Sendable>(_ change: (inout State) -> Outcome) -> Outcome {
        let (outcome, carrier, dispatches) = state.withLock { state in
            (change(&state), state.beginCarrying(), state.beginDispatch())
        }
        if let carrier { carryIn(as: carrier) }
        if dispatches {
            enqueue { self.deliver() }
            state.withLock { $0.endDispatch() }
        }
        return outcome
    }

    // MARK: In to the actor

    private func carryIn(as priority: TaskPriority) {
        Task.detached(executorPreference: service.executor, priority: priority) {
            await self.carry(to: self.service, as: priority)
        }
    }

    /// Takes everything called so far to the actor, in one visit and in order.
    private func carry(to service: isolated TokenService, as carrier: TaskPriority) {
        for errand in state.withLock({ $0.takeErrands(by: carrier) }) {
            switch errand {
            case .retrieve(let segment, let callers, let generation, let priority):
                let seen = state.withLock { $0.seen(generation) }
                service.join(callers: callers, seen: seen, priority: priority) { result in
                    self.advance { $0.answer(segment, with: result) }
                }
            case .perform(let segment, let operation):
                let before = service.generation
                operation(service) { call in self.advance { $0.finish(segment, then: call) } }
                let fence = service.generation == before ? nil : service.generation
                advance { $0.tookEffect(fence: fence) }
            }
        }
    }

    // MARK: Out to the queue

    /// Calls what is ready; on a concurrent queue a second delivery leaves its work to the one that runs.
    private func deliver() {
        var ready = state.withLock { $0.beginDelivery() }
        while var segments = ready.take() {
            for segment in segments { segment.call() }
            let spare = Spare(emptying: &segments)
            ready = state.withLock { $0.continueDelivery(spare) }
        }
    }
}
