import AccessTokens
import Synchronization
import TokenServiceConcurrency

/// Handlers in the order of their calls, on their way to the actor and back to the queue.
///
/// Consecutive calls that find no token form one *segment*: one waiter of the actor stands for all its handlers. Segments are
/// delivered from the front as they become ready, so that no handler overtakes another; many may share one dispatch.
@usableFromInline
final class CallbackLine: Sendable {
    typealias Handler = AccessTokenService.Handler
    typealias Enqueue = @Sendable (_ work: @escaping @Sendable () -> Void) -> Void
    /// The actor's part of an operation, which has already ended what it ends for every caller; passes to `finish`, now or
    /// later, the function to call on the queue.
    typealias Operation =
        @Sendable (
            _ service: isolated TokenService, _ finish: @escaping @Sendable (_ call: @escaping @Sendable () -> Void) -> Void
        ) -> Void

    let service: TokenService
    private let enqueue: Enqueue
    private let alarms = Alarms()
    private let state = Lock(StateMachine())
    /// The state's ``StateMachine/epoch``, or an earlier one, to be read without the lock.
    private let epoch = Atomic(0)
    /// Whether any call waited in the line recently; only a hint about which path to try first.
    private let isLineWaiting = Atomic(false)
    /// Whether a call was cancelled while a delivery had it; read before each handler.
    private let hasCancelled = Atomic(false)

    init(service: TokenService, enqueue: @escaping Enqueue) {
        self.service = service
        self.enqueue = enqueue
    }

    /// Adds a call; returns its place, with which it can be cancelled.
    func retrieve(within limit: Duration? = nil, _ handler: @escaping Handler) -> Position {
        let limit = limit.map { Limit($0, from: service.now) }
        // Behind waiting calls, the token is usually the same as the last call's, so it need not be copied.
        if isLineWaiting.load(ordering: .relaxed), let publication = service.publicationIfNothingDue(),
            let place = advance({ $0.append(Call(handler: handler), publication: publication, limit: limit) })
        {
            return place
        }
        // Read the epoch first: if an operation of this line takes a place from now on, the call looks again.
        let start = epoch.load(ordering: .acquiring), look = service.look()
        let (token, publication, generation) = (look.token, look.publication, look.generation)
        if let token,
            let place = advance({
                $0.append(Call(handler: handler), token: token, publication: publication, limit: limit, since: start)
            })
        {
            return place
        }
        return lineUp(handler, limit, seen: generation, since: start)
    }

    /// Retrieves a token instead of a refused one; the refusal counts as an operation.
    func retrieve(insteadOf refused: AccessToken, _ handler: @escaping Handler) -> Position {
        service.refuse(refused, isToResend: true)
        let call: Call
        do {
            call = try waitingCall(handler)
        } catch {
            perform { service, finish in
                service.settle()
                finish {}
            }
            return answerOutOfTurn(handler, error)
        }
        let urgency = Urgency.current
        return advance { $0.append(call, insteadOf: refused, as: urgency) }
    }

    /// Serves a call that asks for more than a valid token.
    ///
    /// It has no place in the line: calls that a valid token serves would wait for its load there.
    func retrieve(_ handler: @escaping Handler, asking ask: @escaping @Sendable (TokenService) async throws -> AccessToken) {
        let call: Call
        do {
            call = try waitingCall(handler)
        } catch {
            _ = answerOutOfTurn(handler, error)
            return
        }
        Task.detached(on: service.executor, priority: Urgency.current.priority) { [self] in
            let result = await Result { try await ask(service) }
            _ = advance { $0.answerOutOfTurn(call, with: result) }
        }
    }

    /// Adds a call that isn't a hit to the line.
    ///
    /// Thread A looks and is interrupted; meanwhile thread B signs out through this line. A's place is behind the sign-out, so
    /// its call counts as made after it.
    private func lineUp(
        _ handler: @escaping Handler, _ limit: Limit?, seen generation: Int, since start: Int
    ) -> Position {
        // A call without time left starts nothing.
        if let limit, limit.hasPassed { return answerOutOfTurn(handler, TokenServiceError(.deadlineExceeded)) }
        let call: Call
        // The calls before this one wait for the same load.
        do { call = try waitingCall(handler) } catch { return answerOutOfTurn(handler, error) }
        let urgency = Urgency.current
        var (start, generation) = (start, generation)
        while true {
            let place = advance { [generation, start] in
                $0.append(call, generation: generation, as: urgency, limit: limit, since: start)
            }
            if let place { return place }
            start = epoch.load(ordering: .acquiring)
            generation = service.currentGeneration
        }
    }

    /// Notes that the current task waits for the service, if the task is part of a load.
    private func waitingCall(_ handler: @escaping Handler) throws -> Call {
        guard let endWait = try service.beginWaitingForCallback() else { return Call(handler: handler) }
        let wait = CallbackWait(endWait)
        return Call { result in
            wait.end()
            handler(result)
        }
    }

    private func answerOutOfTurn(_ handler: @escaping Handler, _ error: any Error) -> Position {
        advance { $0.answerOutOfTurn(Call(handler: handler), with: .failure(error)) }
    }

    /// Takes a call back: its handler is released, and not called any more, unless another thread is calling it.
    func cancel(_ place: Position) {
        // The handler's captures are released with this value, outside the lock.
        let cancellation = state.withLock { state in
            let cancellation = state.cancel(place)
            hasCancelled.store(!state.cancelled.isEmpty, ordering: .releasing)
            return cancellation
        }
        if case .inLine(_, let deserted?) = cancellation { leave(deserted, for: place.segment) }
    }

    /// Removes a waiter whose calls have all left; if it has its answer already, the answer finishes the segment.
    private func leave(_ waiter: TokenService.CallbackPlace, for segment: Int) {
        if service.leave(waiter) { advance { $0.finish(segment, .late) } }
    }

    private func isCancelled(_ place: Position) -> Bool {
        hasCancelled.load(ordering: .acquiring) && state.withLock { $0.cancelled.contains(place) }
    }

    func perform(_ operation: @escaping Operation) {
        let urgency = Urgency.current
        advance { $0.append(operation, as: urgency) }
    }

    /// Changes the state, then starts what the change made necessary, outside the lock.
    @discardableResult
    private func advance<Outcome: Sendable>(_ change: (inout StateMachine) -> Outcome) -> Outcome {
        let (outcome, carrier, alarm, isToDispatch, deserted) = state.withLock { state in
            let outcome = change(&state)
            epoch.store(state.epoch, ordering: .releasing)
            isLineWaiting.store(!state.segments.isEmpty, ordering: .relaxed)
            return (outcome, state.beginCarrying(), state.nextAlarm(), state.beginDispatch(), state.takeDeserted())
        }
        for (segment, waiter) in deserted { leave(waiter, for: segment) }
        if let carrier { carryIn(as: carrier) }
        if let alarm { set(alarm) }
        if isToDispatch {
            enqueue { self.deliver() }
            state.withLock { $0.endDispatch() }
        }
        return outcome
    }

    // MARK: In to the actor

    private func carryIn(as urgency: Urgency) {
        Task.detached(on: service.executor, priority: urgency.priority) {
            await self.carry(to: self.service, as: urgency)
        }
    }

    /// Takes all calls so far to the actor, in one visit and in order.
    private func carry(to service: isolated TokenService, as carrier: Urgency) {
        // A call with a limit that is made after this reading has time left.
        let now = state.withLock { $0.limits.count > 0 } ? service.now : nil
        let segments = advance { state in
            if let now { state.expire(at: now) }
            return state.takeErrands(by: carrier)
        }
        for segment in segments {
            switch state.withLock({ $0.takeErrand(of: segment) }) {
            case .retrieve(let generation, let urgency)?:
                let callers = state.withLock { $0.callers(of: segment) }
                // If all of the calls have left on the way, they start nothing.
                guard callers > 0 else {
                    advance { $0.finish(segment, .late) }
                    continue
                }
                join(segment) { service.joinCallbacks(callers: callers, seen: generation, urgency: urgency, then: $0) }
            case .retrieveInstead(let refused)?:
                if state.withLock({ $0.callers(of: segment) }) > 0 {
                    join(segment) { service.joinCallbacks(insteadOf: refused, then: $0) }
                } else {
                    service.refuse(refused)
                    service.settle()
                    advance { $0.finish(segment, .late) }
                }
            case .perform(let operation)?:
                operation(service) { call in self.advance { $0.finish(segment, .done(call)) } }
            case nil: continue
            }
        }
    }

    /// Lets a segment's calls wait for a token.
    private func join(
        _ segment: Int,
        _ join: (@escaping @Sendable (Result<AccessToken, any Error>) -> Void) -> TokenService.CallbackPlace?
    ) {
        let waiter = join { result in self.advance { $0.finish(segment, .answered(result)) } }
        guard let waiter, let deserted = state.withLock({ $0.carried(segment, waiter: waiter) }) else { return }
        leave(deserted, for: segment)
    }

    // MARK: Limits

    private func set(_ alarm: Alarm) {
        switch alarm {
        case .ring(let time): service.set(alarms, to: time) { [weak self] now in self?.advance { $0.expire(at: now) } }
        case .never:
            alarms.wakeNoMore()
            // Another thread may have added a call with a limit in between.
            if let time = state.withLock({ $0.limits.earliest }) { set(.ring(at: time)) }
        }
    }

    // MARK: Out to the queue

    /// Calls the handlers that are ready; on a concurrent queue, a second delivery leaves its handlers to the running one.
    private func deliver() {
        var (ready, alarm) = state.withLock { state in
            let ready = state.beginDelivery()
            isLineWaiting.store(!state.segments.isEmpty, ordering: .relaxed)
            return (ready, state.nextAlarm())
        }
        if let alarm { set(alarm) }
        while var segments = ready.take() {
            // Indices avoid a copy of each segment.
            for index in segments.indices { segments[index].call { isCancelled($0) } }
            let buffers = ReusableBuffers(emptying: &segments)
            ready = state.withLock { state in
                defer { hasCancelled.store(false, ordering: .releasing) }
                return state.continueDelivery(buffers)
            }
        }
    }
}

/// The wait of a load for a callback; it ends when the callback is answered, or released because its call was cancelled.
private final class CallbackWait: Sendable {
    private let onEnd: Lock<(@Sendable () -> Void)?>

    init(_ onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = Lock(onEnd)
    }

    deinit { end() }

    func end() { onEnd.withLock { $0.take() }?() }
}
