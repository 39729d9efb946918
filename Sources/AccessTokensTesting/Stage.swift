import TokenServiceConcurrency

/// A task executor without threads: its tasks run on the test's own thread, when the test says so.
///
/// ``start(priority:_:)`` runs until every task has ended or is suspended. A task that isn't done then is waiting for something,
/// so a test can check that it still waits, without a pause:
///
/// ```swift
/// let stage = Stage()
/// let clock = ManualClock()
/// let nap = stage.start { try await clock.sleep(for: .seconds(30)) }
/// #expect(!nap.isDone)
/// clock.advance(by: .seconds(30))
/// stage.run()
/// #expect(nap.isDone)
/// ```
///
/// Give the stage to all the code under test; a `TokenService` takes it with `driven(by:clock:wallClock:seed:)`. The stage
/// doesn't wait for code that runs elsewhere, such as `@MainActor` code, a `Task {}` that doesn't prefer the stage, or work on a
/// dispatch queue.
///
/// Work may be enqueued from any thread. ``run()`` runs it on the calling thread; call it, and ``start(priority:_:)``, from
/// one thread at a time to keep the order.
public final class Stage: TaskExecutor {
    private let jobs = Lock<[UnownedJob]>([])

    /// Creates a stage without tasks.
    public init() {}

    /// Takes in a job, which runs at the next ``run()``; the Swift runtime calls this.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs tasks, in the order in which they became runnable, until each has ended or is suspended.
    ///
    /// Call it after everything that lets a task continue: an answer, a step of the clock, a cancellation. It never returns if a
    /// task waits by yielding in a loop.
    public func run() {
        while let job = takeFirst() { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Starts a task and runs until every task has ended or is suspended.
    ///
    /// - Parameters:
    ///   - priority: The task's priority; `nil` for the calling task's.
    ///   - body: The task's work, on this stage.
    /// - Returns: The task, to check its outcome or to cancel it.
    @discardableResult
    public func start<Value: Sendable>(
        priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Value
    ) -> Player<Value> {
        let player = Player(on: self, priority: priority, body)
        run()
        return player
    }
}

/// Smaller steps, for tests of the moments between two steps of a task.
extension Stage {
    /// How many jobs could run now.
    package var pending: Int { jobs.withLock { $0.count } }

    /// The priorities of the jobs that could run now.
    package var priorities: [TaskPriority] { jobs.withLock { $0.map { TaskPriority(rawValue: $0.priority.rawValue) } } }

    /// Runs only the most urgent job, like a pool that has no time for others.
    package func runMostUrgent() {
        let job = jobs.withLock { jobs in
            jobs.indices.max { jobs[$0].priority < jobs[$1].priority }.map { jobs.remove(at: $0) }
        }
        if let job { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Runs the jobs that can run now, but not those that they add.
    package func runOnce() {
        for _ in 0..<pending {
            guard let job = takeFirst() else { return }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// Starts a task that is cancelled before its first step, and runs it.
    package func startCancelled<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Player<Value> {
        let player = Player(on: self, body)
        player.cancel()
        run()
        return player
    }

    /// Starts a task and runs only its first step.
    package func startOnce<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Player<Value> {
        let player = Player(on: self, body)
        runOnce()
        return player
    }

    private func takeFirst() -> UnownedJob? {
        jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }
}
