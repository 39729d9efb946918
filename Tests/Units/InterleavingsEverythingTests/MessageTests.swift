@testable import Interleavings
@testable import InterleavingsEverything
import Testing
import TokenServiceConcurrency

@Suite struct `Messages where everything is driven` {
    #if os(Linux)
    @Test func `name the top-level code in which a closure stands`() {
        #expect(CallSite.readable("$s8Programsy13Interleavings10SimulationCYaYbKcfU3_") == "closure #5 in top-level code")
    }

    @Test func `name no thunk that the optimizer made`() {
        #expect(CallSite.readable("$sxIeAgHr_xs5Error_pIegHrzo_s8SendableRzlTRyt_Tg5") == nil)
    }
    #endif

    @Test func `look for no task outside when executions differ`() async throws {
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
