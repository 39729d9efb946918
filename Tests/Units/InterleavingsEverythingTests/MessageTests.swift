import Dispatch
@testable import Interleavings
@testable import InterleavingsEverything
import Testing
import TokenServiceConcurrency

@Suite struct `Messages where everything is driven` {
    #if os(Linux) && DEBUG && compiler(<6.4)
    @Test(arguments: [Driving.preferred, .everything, .everythingAndQueues])
    func `name the function and the line where each task of a deadlock waits`(_ driving: Driving) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.mixed(schedules: 5), driving: driving) { simulation in
                let lost = simulation.spawn("lost") { await waitForEver() }
                simulation.spawn("reader") { try await lost.value }
                let semaphore = DispatchSemaphore(value: 0)
                if driving.needsThreads { simulation.spawn("blocked") { block(on: semaphore) } }
            }
        }
        let text = "\(try #require(failure?.underlying))"
        #expect(text.contains("'lost' in waitForEver() at InterleavingsEverythingTests/MessageTests.swift:"), "\(text)")
        #expect(text.contains("'reader' in closure #"), "\(text)")
        guard driving.needsThreads else { return }
        #expect(text.contains("'blocked' in block(on:) at InterleavingsEverythingTests/MessageTests.swift:"), "\(text)")
    }
    #endif

    #if os(Linux)
    @Test func `name the top-level code that contains a closure`() {
        #expect(CallSite.readable("$s8Programsy13Interleavings10SimulationCYaYbKcfU3_") == "closure #5 in top-level code")
    }

    @Test func `don't name what the macro of a test adds to it`() {
        let name = "$s5TestsAAV04$s5TestsAAV5waits4TestfMp_16fa8b1f53dd8688affMu_33_2C1DDE1E6712A85CFFD2CA9C720478F1LLyyYaYbKFZ"
        #expect(CallSite.readable(name) == nil)
        #expect(CallSite.readable("$s5Tests5waitsyyYaF") == "waits()")
    }

    @Test func `name no thunk that the optimizer made`() {
        #expect(CallSite.readable("$sxIeAgHr_xs5Error_pIegHrzo_s8SendableRzlTRyt_Tg5") == nil)
    }
    #endif

    @Test func `don't suspect a task outside when executions differ`() async throws {
        let runs = Lock(0)
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 5), driving: .everything) { simulation in
                let run = runs.withLock { runs in
                    runs += 1
                    return runs
                }
                for number in 0...run % 2 { simulation.spawn("task \(number)") { await Task.yield() } }
            }
        }
        let problem = try #require(failure?.underlying as? ExplorationProblem)
        #expect(problem.code == .nondeterminism)
        #expect(!problem.description.contains("executorPreference"), "\(problem)")
        #expect(problem.description.contains("the order of a Set or Dictionary"), "\(problem)")
    }

    @Test(arguments: [false, true]) func `advise no lock of the explorer's where a step blocks`(drivesQueues: Bool) async throws {
        let isOver = Lock(false)
        let driving: Driving = drivesQueues ? .everythingAndQueues : .everything
        var settings = Settings(driving: driving, stepSeconds: 0.25)
        // Done as in `explore`, since the check of the doors drives everything, too.
        settings.doors = try await ExplorationLimiter.shared.run(alone: true) { try driving.checkedDoors() }
        let watchdog = Watchdog(settings)
        let exploration = Exploration(settings: settings, countsFailures: false, watchdog: watchdog) { simulation in
            simulation.spawn("blocked") { while !isOver.withLock({ $0 }) {} }
        }
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await ExplorationLimiter.shared.run(alone: true) {
                try await watchdog.run(on: globalConcurrentExecutor) {
                    var exploration = exploration
                    return try exploration.run(.replay(""))
                }
            }
        }
        isOver.withLock { $0 = true }
        let problem = try #require(failure?.underlying as? ExplorationProblem)
        #expect(problem.code == .blockedThread)
        #expect(!problem.description.contains("InterleavedLock"), "\(problem)")
        #expect(problem.description.contains(".everythingAndQueues") == !drivesQueues, "\(problem)")
    }
}

private func waitForEver() async {
    await unsafe withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
}

private func block(on semaphore: DispatchSemaphore) { semaphore.wait() }
