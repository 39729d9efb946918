import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// The surroundings of a design while a trial runs: time, a pool, a queue, and the way to the server; all of it simulated.
///
/// ``EveryOrder`` is for the explorer, which tries the orders one after the other. ``UsualOrder`` has one order, first come,
/// first served, and room for thousands of callers.
protocol Surroundings: Sendable {
    var clock: any Clock<Duration> { get }
    /// Where tasks run; `nil`: on the default pool.
    var executor: (any TaskExecutor)? { get }
    /// The environment of a `TokenService`.
    var environment: TokenService.Environment { get }

    /// Creates a serial queue, and returns a closure that enqueues a block there.
    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void
    /// Starts a task.
    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void)
    /// Notes what happened, for a diagram.
    func log(_ event: @autoclosure () -> String)

    /// Returns how long the server takes to answer a load, given the load's number from 0.
    func latency(ofLoad number: Int) -> Duration
    /// Delivers an answer from the server.
    func deliver(_ answer: @escaping @Sendable () -> Void)

    /// Waits until nothing is left to do.
    func settle() async throws
    /// Waits for all answers that take no longer than usual.
    func settleForNow() async throws
    /// Lets time pass.
    func pass(_ duration: Duration) async throws
}

/// The surroundings of one execution under the explorer: the schedule decides when an answer arrives and which task continues.
///
/// If the simulation drives everything, a design uses no executor, clock or queue of it.
struct EveryOrder: Surroundings {
    let simulation: Simulation
    /// Answers under way, in any order.
    private let answers: VirtualQueue

    init(_ simulation: Simulation) {
        self.simulation = simulation
        answers = simulation.concurrentQueue("network")
    }

    var clock: any Clock<Duration> { simulation.seams.clock }
    var executor: (any TaskExecutor)? { simulation.seams.executor }
    var environment: TokenService.Environment { simulation.seams.environment() }

    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void {
        simulation.seams.serialQueue(label)
    }

    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) { simulation.spawn(name, body) }
    func log(_ event: @autoclosure () -> String) { simulation.log(event()) }
    func latency(ofLoad number: Int) -> Duration { .zero }
    func deliver(_ answer: @escaping @Sendable () -> Void) { answers.async(answer) }
    func settle() async throws { try await simulation.settle() }
    func settleForNow() async throws { try await simulation.settle(waitsForTimers: false) }
    func pass(_ duration: Duration) async throws { try await simulation.clock.sleep(for: duration) }
}

/// Surroundings in which all tasks run in the order in which they became runnable, the same in every run.
///
/// Time moves only when nothing can run. So all callers ask before the first answer arrives, the worst order for a design that
/// loads for each caller. Stages 1 and 2 could not run in another way: their behaviour on several threads is undefined.
struct UsualOrder: Surroundings {
    private let manualClock = ManualClock()
    private let stage = Stage()

    /// All latencies are multiples of this.
    private static let step = Duration.milliseconds(40)
    /// The first request is the slowest, since it finds no connection yet; a later one may be answered first.
    private static let latencies = [3, 1, 2]
    /// The longest time from a request to its answer.
    private static let slowest = step * 3

    var clock: any Clock<Duration> { manualClock }
    var executor: (any TaskExecutor)? { stage }
    var environment: TokenService.Environment { .driven(by: stage, clock: manualClock, seed: 1) }

    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void {
        // The stage runs tasks in the order in which they were started, one at a time.
        { [stage] block in Task.detached(executorPreference: stage) { block() } }
    }

    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) { stage.start(body) }
    func log(_ event: @autoclosure () -> String) {}
    func latency(ofLoad number: Int) -> Duration { Self.step * Self.latencies[number % Self.latencies.count] }
    func deliver(_ answer: @escaping @Sendable () -> Void) { answer() }
    func settle() { pass(Self.slowest) }
    func settleForNow() { pass(Self.slowest) }

    /// Completes everything that is still under way.
    func end() {
        manualClock.advance(by: .seconds(24 * 3600))
        stage.run()
    }

    func pass(_ duration: Duration) {
        // Short enough to keep the order of the network's answers, and of the limits of calls and loads.
        let step = duration > .seconds(1) ? .seconds(1) : Self.step
        let end = manualClock.now.advanced(by: duration)
        while manualClock.now < end {
            manualClock.advance(by: step)
            stage.run()
        }
    }
}

/// Surroundings in which callers hold every thread of the pool, so that no task there runs.
///
/// Everything else has threads of its own, as in a program: queues, the network, and the queue of a `TokenService`.
struct BlockedPool: Surroundings {
    private let usual = UsualOrder()
    private let pool = Stage()

    var clock: any Clock<Duration> { usual.clock }
    var executor: (any TaskExecutor)? { usual.executor }
    var environment: TokenService.Environment { usual.environment }

    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void { usual.serialQueue(label) }
    func spawn(_ name: String, _ body: @escaping @Sendable () async -> Void) {
        Task.detached(executorPreference: pool) { await body() }
    }
    func log(_ event: @autoclosure () -> String) {}
    func latency(ofLoad number: Int) -> Duration { usual.latency(ofLoad: number) }
    func deliver(_ answer: @escaping @Sendable () -> Void) { answer() }
    func settle() { usual.settle() }
    func settleForNow() { usual.settleForNow() }
    func pass(_ duration: Duration) { usual.pass(duration) }

    /// Frees the threads, and completes everything.
    func end() {
        pool.run()
        usual.end()
        pool.run()
    }
}
