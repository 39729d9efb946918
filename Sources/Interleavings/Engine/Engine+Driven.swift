import TokenServiceConcurrency

extension Engine {
    /// The doors that are open during a step, and the time shown through them.
    struct StepDoors: Sendable {
        let session: (any DoorSession)?
        let now: Duration

        func step(_ body: () -> Void) {
            guard let session else { return body() }
            session.step(at: now, body)
        }

        /// Runs the explorer's own code inside a step.
        func away(_ body: () -> Void) {
            guard let session else { return body() }
            session.away(body)
        }
    }

    var doors: StepDoors { state.withLock { $0.doors() } }

    /// Returns the doors for work that arrives after the execution.
    func doors(of session: (any DoorSession)?) -> StepDoors {
        StepDoors(session: session, now: state.withLock { $0.clock.now })
    }
}

extension Engine: DrivenEngine {
    package func addActor(named name: String, inOrder: Bool) -> Int { addLane(name, inOrder ? .fifo : .serial) }

    package func addPool() -> Int { addLane("pool", .concurrent) }

    package func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some SerialExecutor, in session: any DoorSession) {
        enqueue(Job(job, on: executor, pool: pool), lane: lane, in: session)
    }

    package func enqueue(_ job: consuming ExecutorJob, lane: Int, on executor: some TaskExecutor, in session: any DoorSession) {
        enqueue(Job(job, on: executor), lane: lane, in: session)
    }

    package func sleep(_ job: consuming ExecutorJob, for duration: Duration) {
        let sleeper = Job.currentTask
        state.withLock { state in state.tasks.number(of: sleeper).map { state.noteWait(.sleep, of: $0) } }
        wait(for: duration, Suspension(sleep: Job(sleep: job)), sleeper: sleeper)
    }

    /// - Returns: The timer's number; `nil`: the timer is gone.
    @discardableResult
    func wait(for duration: Duration, _ suspension: Suspension, sleeper: UInt32 = 0) -> Int? {
        guard let now = state.withLock({ $0.phase == .over ? nil : $0.clock.now }) else { return nil }
        let timer = newTimer()
        sleep(timer, until: now + duration, suspension, sleeper: sleeper)
        return timer
    }

    package func noteLeaving(_ deed: String) {
        let callSite = callSite
        state.withLock { state in
            guard state.phase == .running else { return }
            state.noteEscape("'\(state.name(of: state.lastTask))' \(deed)", in: callSite)
        }
    }

    /// Names the function that leaves the simulation, if the execution makes a report.
    var callSite: (@Sendable () -> String?)? {
        guard records, let session = state.withLock({ $0.escape == nil ? $0.session : nil }) else { return nil }
        return session.callSite()
    }
}

extension Engine.State {
    mutating func noteWait(_ wait: Trace.Wait, of task: Int) {
        guard recorder != nil else { return }
        let name = name(of: task)
        recorder?.note(wait, of: name)
    }

    mutating func doors() -> Engine.StepDoors { Engine.StepDoors(session: session, now: clock.now) }

    /// Ends the sleep of a task that was cancelled and continues early: otherwise time would move to its deadline.
    mutating func endSleep(of sleeper: UInt32) {
        guard sleeper != 0, let suspension = clock.remove(sleeper: sleeper) else { return }
        resumptions.append(.waited(suspension, .cancelled))
    }
}
