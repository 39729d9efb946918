import TokenServiceConcurrency

/// Threads whose step sleeps in the kernel, while others continue.
///
/// A thread may stop at a point while it holds a lock that the explorer doesn't know about: the runtime's own, under which
/// cancellation handlers run, or a plain mutex. Another thread that needs the lock sleeps until the first one continues. So a
/// sleeping thread is not runnable, and the others are. When it wakes, it runs beside the step that woke it, up to its next point
/// or its end; the engine waits for both, and adds its jobs after the other one's, so that the same choices lead to the same
/// execution. A step that wakes one by cancelling a task stops behind that call.
extension Engine {
    struct Sleeper: Sendable {
        let thread: ControlledThread
        let entry: Entry
    }

    /// Takes back the threads that have reached a point or their end.
    func takeBackSleepers() {
        for sleeper in state.withLock({ $0.sleepers }) {
            let result = sleeper.thread.wait(0)
            if result != .asleep { takeBack(sleeper, ended: result == .ended) }
        }
    }

    /// Waits for a late thread, because nothing else can run; after the time for a step it counts as blocked.
    func awaitSleeper() {
        guard let threads, let sleeper = state.withLock({ $0.sleepers.first }) else { return }
        let holder = state.withLock { $0.holder(for: sleeper) }
        // What it waits for can't come if its holder can't run.
        let patience = holder == nil ? threads.stepSeconds : 0
        let awaitsInput = sleeper.thread.awaitsInput
        if let result = sleeper.thread.abandon(after: patience) { return takeBack(sleeper, ended: result == .ended) }
        state.withLock { state in
            state.sleepers.removeAll { $0.thread === sleeper.thread }
            state.lostThreads.append(sleeper)
        }
        block(sleeper.entry, by: holder, awaitsInput: awaitsInput)
    }

    private func takeBack(_ sleeper: Sleeper, ended: Bool) {
        state.withLock { state in
            state.sleepers.removeAll { $0.thread === sleeper.thread }
            if ended { state.lanes.end(sleeper.entry.turn) }
            if state.sleepers.isEmpty { state.lanes.takeBackSleepers() }
        }
        if ended { threads?.takeBack(sleeper.thread) }
    }
}

extension Engine.State {
    /// The task that holds the lock for which a thread sleeps, if that task can't run either, and no time moves for it.
    fileprivate mutating func holder(for sleeper: Engine.Sleeper) -> Int? {
        hasRunningTimer() ? nil : task(onOneOf: sleeper.thread.possibleHolders)
    }

    /// The task whose step has stopped or sleeps on one of the threads, by their system numbers.
    func task(onOneOf threads: [Int32]) -> Int? {
        let stopped = stoppedThreads.compactMap { entry in
            if case .thread(let thread) = entry.work { Engine.Sleeper(thread: thread, entry: entry) } else { nil }
        }
        let holder = (stopped + sleepers + lostThreads).first { sleeper in
            sleeper.thread.systemNumber.map { $0 != 0 && threads.contains($0) } ?? false
        }
        return holder.flatMap { isFrozen($0.entry.process) ? nil : $0.entry.task }
    }
}

extension Engine {
    /// Cancels the remaining tasks at the end, on controlled threads if there are any: cancelling may have to wait for a handler
    /// that has stopped at a point, and this thread must not.
    func cancel(_ cancellations: [@Sendable () -> Void]) {
        guard threads != nil else {
            for cancel in cancellations { cancel() }
            return
        }
        state.withLock { state in
            let entries = cancellations.map { cancel in
                Entry(work: .block(cancel), turn: Turn(lane: Self.pool), task: state.newTask(named: ""), since: state.steps)
            }
            state.lanes.addFirst(entries)
        }
    }

    /// The pool's lane, the first that a simulation creates.
    private static let pool = 0
}
