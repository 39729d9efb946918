import AccessTokens
import Synchronization
import TokenServiceConcurrency

/// Handlers in the order of their calls, on their way to the actor and back to the queue.
///
/// Consecutive calls that find no token form one *segment*: one waiter of the actor stands for all its handlers. Segments are
/// delivered from the front as they become ready, so that no handler overtakes another; many may share one dispatch.
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

    init(service: TokenService, enqueue: @escaping Enqueue) {
        self.service = service
        self.enqueue = enqueue
    }

    func retrieve(within limit: Duration? = nil, _ handler: @escaping Handler) {
        let limit = limit.map { Limit($0, from: service.now) }
        // Behind waiting calls, the token is usually the same as the last call's, so it need not be copied.
        if isLineWaiting.load(ordering: .relaxed), let publication = service.publicationIfNothingDue(),
            advance({ $0.append(Call(handler: handler), publication: publication, limit: limit) })
        {
            return
        }
        // Read the epoch first: if an operation of this line takes a place from now on, the call looks again.
        let start = epoch.load(ordering: .acquiring), look = service.look()
        let (token, publication, generation) = (look.token, look.publication, look.generation)
        if let token,
            advance({ $0.append(Call(handler: handler), token: token, publication: publication, limit: limit, since: start) })
        {
            return
        }
        lineUp(handler, limit, seen: generation, since: start)
    }

    /// Retrieves a token instead of a refused one; the refusal counts as an operation, and answers its own call.
    func retrieve(insteadOf refused: AccessToken, _ handler: @escaping Handler) {
        do {
            let endWait = try service.beginWaitingForCallback()
            service.refuse(refused, ifCurrent: true)
            perform { service, finish in
                service.join(insteadOf: refused) { result in
                    endWait?()
                    finish { handler(result) }
                }
            }
        } catch {
            answerOutOfTurn(handler, error)
        }
    }

    /// Adds a call that isn't a hit to the line.
    ///
    /// Thread A looks and is interrupted; meanwhile thread B signs out through this line. A's place is behind the sign-out, so
    /// its call counts as made after it.
    private func lineUp(_ handler: @escaping Handler, _ limit: Limit?, seen generation: Int, since start: Int) {
        // A call without time left starts nothing.
        if let limit, limit.hasPassed { return answerOutOfTurn(handler, TokenServiceError(.deadlineExceeded)) }
        var call = Call(handler: handler)
        do {
            if let endWait = try service.beginWaitingForCallback() {
                call = Call { result in
                    endWait()
                    handler(result)
                }
            }
        } catch {
            // The calls before this one wait for the same load.
            return answerOutOfTurn(handler, error)
        }
        let urgency = Urgency.current
        var (start, generation) = (start, generation)
        while !advance({ [call] in $0.append(call, generation: generation, as: urgency, limit: limit, since: start) }) {
            start = epoch.load(ordering: .acquiring)
            generation = service.currentGeneration
        }
    }

    private func answerOutOfTurn(_ handler: @escaping Handler, _ error: any Error) {
        advance { $0.answerOutOfTurn(Call(handler: handler), with: .failure(error)) }
    }

    func perform(_ operation: @escaping Operation) {
        let urgency = Urgency.current
        advance { $0.append(operation, as: urgency) }
    }

    /// Changes the state, then starts what the change made necessary, outside the lock.
    @discardableResult
    private func advance<Outcome: Sendable>(_ change: (inout StateMachine) -> Outcome) -> Outcome {
        let (outcome, carrier, alarm, isToDispatch) = state.withLock { state in
            let outcome = change(&state)
            epoch.store(state.epoch, ordering: .releasing)
            isLineWaiting.store(!state.segments.isEmpty, ordering: .relaxed)
            return (outcome, state.beginCarrying(), state.nextAlarm(), state.beginDispatch())
        }
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
                join(service, segment, callers: state.withLock { $0.callers(of: segment) }, seen: generation, urgency: urgency)
            case .perform(let operation)?:
                operation(service) { call in self.advance { $0.finish(segment, .done(call)) } }
            case nil: continue
            }
        }
    }

    private func join(
        _ service: isolated TokenService, _ segment: Int, callers: Int, seen: Int, urgency: Urgency
    ) {
        // All of the calls ran out of time on the way, so they start nothing.
        guard callers > 0 else { return advance { $0.finish(segment, .late) } }
        service.join(callers: callers, seen: seen, urgency: urgency) { result in
            self.advance { $0.finish(segment, .answered(result)) }
        }
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
            for index in segments.indices { segments[index].call() }
            let buffers = ReusableBuffers(emptying: &segments)
            ready = state.withLock { $0.continueDelivery(buffers) }
        }
    }
}
