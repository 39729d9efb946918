/// Tasks of a simulation that can be frozen and killed together, like those of a process.
///
/// ```swift
/// let app = simulation.process("app")
/// app.spawn("refresh") { await refresh() }
/// simulation.spawn("system") { app.kill() }  // between any two steps, before the first or after the last
/// ```
///
/// A task belongs to the process in which it is spawned, and so do the tasks that it creates: children of groups, `async let`,
/// and other tasks that the simulation drives. The sleeps of these tasks, and the blocks that they enqueue, belong to it, too. All
/// processes of a simulation share its memory. Give each process its own actors, queues and locks: a frozen process keeps the
/// locks that it holds, and a killed one keeps them for good.
///
/// Every member may be used from any task of the execution, also from the process's own. After its end they have no effect.
public struct SimulatedProcess: Sendable {
    private let simulation: Simulation
    private let number: Int

    init(_ name: String, of simulation: Simulation) {
        self.simulation = simulation
        number = simulation.engine.addProcess(name)
    }

    /// Starts a task of this process, as ``Simulation/spawn(_:_:fileID:line:)`` does.
    ///
    /// In a killed process it never begins.
    ///
    /// - Parameters:
    ///   - name: Its name in reports; a second task of the same name becomes "name (2)".
    ///   - body: The task's work.
    ///   - fileID: The file of the call, for an error that nothing reads.
    ///   - line: The line of the call.
    /// - Returns: The task. If the process is killed, a wait for it never ends.
    @discardableResult
    public func spawn<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable () async throws -> Value, fileID: StaticString = #fileID, line: Int = #line
    ) -> SpawnedTask<Value> {
        simulation.spawn(name, in: number, at: "\(fileID):\(line)", body)
    }

    /// Stops the process: none of its tasks continues, and none of its timers fires.
    ///
    /// If one of its own tasks calls this, that task continues to its next suspension, or at the granularity of accesses to its
    /// next stop.
    public func freeze() { simulation.engine.set(.frozen, of: number) }

    /// Lets a frozen process continue.
    ///
    /// Time has passed for it, so timers with a past deadline are due.
    ///
    /// A killed process stays dead.
    public func thaw() { simulation.engine.set(.running, of: number) }

    /// Freezes the process for good; the execution doesn't wait for its tasks that haven't ended.
    ///
    /// After the execution its spawned tasks are cancelled, and what can run does. A plain task that sleeps stays asleep.
    public func kill() { simulation.engine.set(.killed, of: number) }
}
