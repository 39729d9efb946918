import TokenServiceConcurrency

/// The scenario's calls.
extension Engine {
    /// Announces a task: the next task that the engine sees for the first time.
    ///
    /// - Returns: Its number in the order of spawning, and its name in a trace.
    ///
    /// - Parameter process: The simulated process that it belongs to; `nil`: that of the caller.
    func beginSpawning(_ name: String, in process: Int?, at place: String) -> (number: Int, name: String) {
        expectHome("simulation.spawn")
        return state.withLock { state in
            guard state.phase != .over else { return (0, name) }
            state.choices.mix(name)
            let name = state.recorder?.unused(name) ?? name
            let process = state.omitted.contains(name) ? state.omission() : process ?? state.process
            let number = state.tasks.announce(Spawned(name: name, place: place, process: process))
            if let process, state.processes[process].condition == .killed { state.tasks.forget(number) }
            return (number, name)
        }
    }

    func didSpawn(_ number: Int, cancel: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if state.phase != .over { state.tasks.set(cancel: cancel, of: number) }
            return state.phase != .running
        }
        if isTooLate { cancel() }
    }

    /// Notes which task of the runtime a spawned task is.
    func begin(spawned number: Int) {
        let (identity, job) = (TaskIdentity.current, Job.current?.task)
        state.withLock { state in
            if state.phase != .over { state.tasks.begin(number, as: identity, job) }
        }
    }

    /// - Parameter error: The task's error.
    func end(spawned number: Int, throwing error: (any Error)? = nil) {
        let isCancellation = error is CancellationError && Task.isCancelled
        state.withLock { state in
            if state.phase != .over { state.tasks.end(number, throwing: isCancellation ? nil : error) }
        }
    }

    /// Notes that something reads a spawned task's result, before or after its end, or that its error needs no reader.
    func read(spawned number: Int) {
        expectHome("a spawned task's result")
        state.withLock { state in
            if state.phase != .over { state.tasks.read(number) }
        }
    }

    /// Fails an execution in which everything ended, if a task threw an error that nothing read.
    func expectErrorsRead() {
        guard let task = state.withLock({ $0.taskWithUnreadError }), let error = task.unreadError else { return }
        // A cancelled task's own error needs no reader, so this error has another cause.
        let code: ExplorationProblem.Code = error is CancellationError ? .uncausedCancellation : .unreadError
        // Outside the lock: a description is foreign code.
        let problem = ExplorationProblem(code, tasks: [task.name], detail: "\(error)", place: task.place)
        state.withLock { $0.failure = problem }
    }

    /// Notes whether the scenario checks a requirement before its tasks have begun.
    func noteRequirement() {
        state.withLock { $0.tasks.noteRequirement() }
    }

    /// Performs a spawned task's work.
    func work<Value: Sendable>(_ name: String, _ body: @Sendable () async throws -> Value) async throws -> Value {
        // Bound only in recorded runs: it would cost another kilobyte for each task that never ends.
        guard records else { return try await body() }
        return try await Simulation.$taskName.withValue(name) { try await recording(name, body) }
    }

    /// Runs a spawned task's body, and notes its beginning and its end.
    private func recording<Value: Sendable>(_ name: String, _ body: () async throws -> Value) async throws -> Value {
        log("starts", by: name, kind: .start)
        do {
            let value = try await body()
            log(Value.self == Void.self ? "ends" : "ends: \(Recorder.brief(value))", by: name, kind: .end)
            return value
        } catch {
            log("throws \(PlainText.beginning(of: error))", by: name, kind: .end)
            throw error
        }
    }

    /// - Parameter task: The task that logs; `nil`: the task of the current step.
    func log(_ text: @autoclosure () -> String, by task: String?, kind: Trace.Event.Kind = .event) {
        if kind == .event { expectHome("simulation.log") }
        guard records else { return }
        // Outside the lock: a description is foreign code.
        let text = quietly(text)
        state.withLock { state in
            let name = task ?? state.name(of: state.lastTask)
            state.recorder?.log(text, by: name, kind: kind)
        }
    }

    /// Returns the name under which the current code logs; `nil` where nothing is recorded.
    ///
    /// - Parameter spawned: The spawned task that the code belongs to.
    func author(_ spawned: String?) -> String? {
        records ? state.withLock { $0.author(spawned) } : nil
    }

    /// Creates a text without switching tasks: texts exist only in recorded runs, where an extra step would change the schedule.
    private func quietly(_ text: () -> String) -> String {
        ControlledThread.current?.quietly(text) ?? text()
    }

    /// Records why the execution fails; the first reason counts.
    func fail(_ error: any Error, by task: String?, _ text: @autoclosure () -> String) {
        let text = records ? quietly(text) : ""
        state.withLock { state in
            // A task that ends because the outcome is known does not fail the execution.
            guard state.phase == .running, state.failure == nil else { return }
            state.failure = error
            let name = state.author(task)
            state.recorder?.log(text, by: name, kind: .failure)
        }
    }

    func choose(_ count: Int) -> Int {
        expectHome("simulation.choose")
        return state.withLock { $0.phase != .running ? 0 : $0.choices.value(below: count) }
    }
}
