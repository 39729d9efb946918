import Foundation
import Interleavings
import Synchronization
import Testing
import UntouchedCode

@testable import InterleavingsEverything

@Suite struct `The doors` {
    @Test(
        arguments: [
            (Doors.hops, "a call of a default actor is not a step"), (.tasks, "a task isn't driven"),
            (.pool, "the default pool isn't driven"), (.main, "the main actor isn't driven"), (.time, "clocks"),
            (.sleeps, "a sleep isn't driven"), (.leaving, "an escape isn't noticed"),
        ])
    func `are checked, and the error names one that is shut`(_ door: Doors, name: String) async throws {
        try await check(.all)
        let problem = await #expect(throws: ExplorationProblem.self) { try await check(Doors.all.subtracting(door)) }
        #expect(problem?.code == .shutDoor)
        #expect(problem?.detail.hasPrefix(name) == true, "\(problem as Any)")
    }

    /// Runs off the pool, where checks that wait for outside work would wait for each other.
    private func check(_ doors: Doors) async throws {
        try await withCheckedThrowingContinuation { checked in
            DispatchQueue(label: "check").async { checked.resume(with: Result { try DoorCheck.check(doors) }) }
        }
    }

    @Test(
        arguments: [
            (Doors.blocks, "a queue's block isn't driven"), (.sync, "sync isn't driven"), (.groups, "a group isn't driven"),
            (.semaphores, "a semaphore isn't driven"), (.items, "a work item isn't driven"),
            (.place, "the main queue isn't driven"), (.leaving, "an escape isn't noticed"), (.tasks, "a task isn't driven"),
        ])
    func `for queues are checked too`(_ door: Doors, name: String) async throws {
        try await check(.allAndQueues)
        let problem = await #expect(throws: ExplorationProblem.self) { try await check(Doors.allAndQueues.subtracting(door)) }
        #expect(problem?.code == .shutDoor)
        #expect(problem?.detail.hasPrefix(name) == true, "\(problem as Any)")
    }

    @Test func `are shut for ordinary tests that run beside an exploration`() async throws {
        let isDone = Mutex(false)
        async let exploring: Void = {
            try await explore(.random(schedules: 500), driving: .everything) { _ in try await useEverything { _ in } }
            isDone.withLock { $0 = true }
        }()
        repeat {
            let start = (ContinuousClock.now, Date())
            try await Task.sleep(for: .milliseconds(1))
            let sum = await withTaskGroup(of: Int.self) { group in
                for number in 1...100 {
                    group.addTask {
                        await Task.yield(); return number
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(sum == 5_050)
            #expect(start.0.duration(to: .now) >= .milliseconds(1))
            #expect(start.1.timeIntervalSince1970 > 1_600_000_000)
            await MainActor.run { MainActor.assertIsolated() }
            let actor = Careful()
            try await actor.suspendInManyWays()
        } while !isDone.withLock { $0 }
        try await exploring
    }

    @Test func `release the executors of an execution at its end`() async throws {
        let executor = Mutex<@Sendable () -> (any TaskExecutor)?>({ nil })
        try await explore(.random(schedules: 1), driving: .everything) { simulation in
            let present = simulation.taskExecutor
            executor.withLock { executor in executor = { [weak present] in present } }
            try await useEverything { _ in }
        }
        #expect(executor.withLock { $0 }() == nil)
    }

    @Test func `replay a schedule that they found`() async throws {
        let scenario: @Sendable (Simulation) async throws -> Void = { simulation in
            let server = PriceServer(), cache = PriceCache(server)
            async let one = cache.price()
            async let other = cache.price()
            _ = await (one, other)
            try simulation.require(await server.fetches == 1, "one fetch is enough")
        }
        let failure = await #expect(throws: ScheduleFailure.self) { try await explore(driving: .everything, scenario) }
        let found = try #require(failure)
        #expect("\(found)".contains("driving: .everything"))
        let again = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay(found.schedule), driving: .everything, scenario)
        }
        #expect(again?.diagram == found.diagram)
    }
}
