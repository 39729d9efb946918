import TokenServiceConcurrency

/// A thread-less executor: tasks started on it run, on the test's own thread, until all of them are suspended.
///
/// So a test can say "it still waits": after ``run()`` whoever isn't done is waiting for something.
package final class Stage: TaskExecutor {
    private let jobs = Lock<[UnownedJob]>([])

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// How many jobs could run now.
    package var pending: Int { jobs.withLock { $0.count } }

    /// The priorities of the jobs that could run now.
    package var priorities: [TaskPriority] { jobs.withLock { $0.map { TaskPriority(rawValue: $0.priority.rawValue) } } }

    /// Runs the most urgent job, as a pool does that has no time for others.
    package func runMostUrgent() {
        let job = jobs.withLock { jobs in
            jobs.indices.max { jobs[$0].priority < jobs[$1].priority }.map { jobs.remove(at: $0) }
        }
        if let job { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Runs jobs, in the order in which they became runnable, until there are none.
    package func run() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// Runs the jobs that can run now, and not those that they make.
    package func runOnce() {
        for _ in 0..<pending {
            guard let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// Starts a task and runs until nobody can go on.
    package func start<Value: Sendable>(
        priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Value
    ) -> Player<Value> {
        let player = perform(priority: priority, body)
        run()
        return player
    }

    /// Starts a task that is cancelled before its first step, and runs it.
    package func startCancelled<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Player<Value> {
        let player = perform(body)
        player.cancel()
        run()
        return player
    }

    /// Starts a task and lets it take its first step only.
    package func startOnce<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) -> Player<Value> {
        let player = perform(body)
        runOnce()
        return player
    }

    private func perform<Value: Sendable>(
        priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Value
    ) -> Player<Value> {
        let outcome = Outcome<Value>()
        let task = Task(executorPreference: self, priority: priority) {
            do { outcome.set(.success(try await body())) } catch { outcome.set(.failure(error)) }
        }
        return Player(task: task, result: outcome)
    }

    /// One task on the stage.
    package struct Player<Value: Sendable>: Sendable {
        fileprivate let task: Task<Void, Never>
        fileprivate let result: Outcome<Value>

        package var isDone: Bool { result.value != nil }
        package var isCancelledWithError: Bool { error is CancellationError }
        package var error: (any Error)? { if case .failure(let error) = result.value { error } else { nil } }
        package var value: Value? { try? result.value?.get() }

        package func cancel() { task.cancel() }
    }

    fileprivate final class Outcome<Value: Sendable>: Sendable {
        private let lock = Lock<Result<Value, any Error>?>(nil)

        var value: Result<Value, any Error>? { lock.withLock { $0 } }
        func set(_ result: Result<Value, any Error>) { lock.withLock { $0 = result } }
    }
}

/// What happened, in order.
package final class Log<Entry: Sendable>: Sendable {
    private let lock = Lock<[Entry]>([])

    package init() {}

    package var entries: [Entry] { lock.withLock { $0 } }
    package func append(_ entry: Entry) { lock.withLock { $0.append(entry) } }
}
