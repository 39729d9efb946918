extension Simulation {
    /// Waits until nothing else is left to do: nothing can run, and no timer is pending.
    ///
    /// Time moves on meanwhile. For what only this scenario can wake, it doesn't wait.
    ///
    /// - Throws: `CancellationError` when the execution is over.
    public func settle() async throws {
        try await engine.settle(waitsForTimers: true)
    }

    /// Waits until nothing else can run at the present time, as `Wait` of Go's `testing/synctest`.
    ///
    /// - Throws: `CancellationError` when the execution is over.
    public func settleNow() async throws {
        try await engine.settle(waitsForTimers: false)
    }

    /// Returns a number from 0 up to, not including, `count`: one more choice of the schedule, explored and replayed.
    ///
    /// - Parameters:
    ///   - name: What is chosen; shown in the report.
    ///   - count: How many there are; with fewer than two there is no choice, and the answer is 0.
    public func choose(_ name: String, _ count: Int) -> Int {
        let pick = engine.choose(count)
        log("chooses \(name): \(pick)")
        return pick
    }

    /// Returns one of the elements: one more choice of the schedule, explored and replayed; `nil` if there is none.
    public func choose<Element>(_ name: String, among elements: [Element]) -> Element? {
        guard !elements.isEmpty else { return nil }
        let element = elements[engine.choose(elements.count)]
        log("chooses \(name): \(Recorder.brief(element))")
        return element
    }

    /// Notes that something happened, for the report: free of cost where no report is made.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - task: By whom; unless said otherwise, the spawned task or the queue that this is called from.
    public func log(_ event: @autoclosure () -> String, by task: String? = nil) {
        engine.log(event(), by: task ?? Self.taskName)
    }

    /// Fails the execution, as an error of the scenario would.
    package func fail(_ message: String) {
        let problem = ExplorationProblem(.requirement, detail: message)
        engine.fail(problem, by: Self.taskName, message)
    }

    /// Fails the execution, wherever it is called, unless the condition holds.
    ///
    /// - Parameters:
    ///   - condition: What must hold.
    ///   - message: What it means; shown as the reason of the failure.
    /// - Throws: An ``ExplorationProblem`` with the code ``ExplorationProblem/Code/requirement``.
    public func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        guard !condition else { return }
        let problem = ExplorationProblem(.requirement, detail: message())
        engine.fail(problem, by: Self.taskName, problem.detail)
        throw problem
    }
}
