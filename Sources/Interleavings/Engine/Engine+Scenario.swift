import TokenServiceConcurrency

/// The scenario's calls.
extension Engine {
    /// Announces a task: the next task that the engine sees for the first time.
    ///
    /// - Returns: Its number in the order of spawning, and the name under which a trace has it.
    func beginSpawning(_ name: String) -> (number: Int, name: String) {
        state.withLock { state in
            guard !state.isOver else { return (0, name) }
            let name = state.recorder?.unused(name) ?? name
            state.nextName = name
            // A task's own number comes with its first job.
            state.spawned.append(Spawned(name: name))
            state.unfinished += 1
            return (state.spawned.count - 1, name)
        }
    }

    func didSpawn(_ number: Int, cancel: @escaping @Sendable () -> Void) {
        let isTooLate = state.withLock { state in
            if !state.isOver { state.spawned[number].cancel = cancel }
            return state.isWindingDown
        }
        if isTooLate { cancel() }
    }

    func end(spawned number: Int) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.spawned[number].hasEnded = true
            state.spawned[number].cancel = nil
            state.unfinished -= 1
        }
    }

    /// Runs a spawned task's body, and notes its beginning and its end.
    func recording<Value: Sendable>(_ name: String, _ body: () async throws -> Value) async throws -> Value {
        log("starts", by: name, kind: .start)
        do {
            let value = try await body()
            log(Value.self == Void.self ? "ends" : "ends: \(Recorder.brief(value))", by: name, kind: .end)
            return value
        } catch {
            log("throws \(error)", by: name, kind: .end)
            throw error
        }
    }

    /// - Parameter task: The task that logs; `nil`: the task of the current step.
    func log(_ text: @autoclosure () -> String, by task: String?, kind: Trace.Event.Kind = .event) {
        guard records else { return }
        // Outside the lock: a description is foreign code.
        let text = quietly(text)
        state.withLock { state in
            let name = task ?? state.name(of: state.lastTask)
            state.recorder?.log(text, by: name, kind: kind)
        }
    }

    /// Makes a text without switching: texts exist only in recorded runs, where a further step would change the schedule.
    private func quietly(_ text: () -> String) -> String {
        ControlledThread.current?.quietly(text) ?? text()
    }

    /// Records why the execution fails; the first reason counts.
    func fail(_ error: any Error, by task: String?, _ text: @autoclosure () -> String) {
        let text = records ? quietly(text) : ""
        state.withLock { state in
            // A task that ends because the outcome is known does not fail the execution.
            guard !state.isWindingDown, state.failure == nil else { return }
            state.failure = error
            let name = task ?? state.name(of: state.lastTask)
            state.recorder?.log(text, by: name, kind: .failure)
        }
    }

    func choose(_ count: Int) -> Int {
        guard count > 1 else { return 0 }
        return state.withLock { state in
            guard !state.isWindingDown else { return 0 }
            let pick = state.chooser.value(below: count)
            state.choices.append(pick)
            state.fingerprint.mix(pick)
            state.fingerprint.mix(count)
            return pick
        }
    }
}
