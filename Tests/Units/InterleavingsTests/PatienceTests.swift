import Interleavings
import TestBudgets
import Testing

@Suite struct `Patience` {
    /// 160 and 300 are far beyond the number of times that a random walk passes over a task, which is at most 120 here.
    @Test(arguments: isThorough ? [1, 120, 121, 300] : [1, 121, 160])
    func `of an exhaustive exploration has no limit, so a task may be arbitrarily late`(jobs: Int) async throws {
        let orders = Journal()
        let summary = try await explore(.exhaustive()) { simulation in
            let order = Journal()
            simulation.spawn("late") { orders.note("late after \(order.count)") }
            simulation.spawn("busy") {
                for job in 1...jobs {
                    order.note("busy")
                    if job < jobs { await Task.yield() }
                }
            }
        }
        #expect(summary.schedules == jobs + 1)
        #expect(Set(orders.all) == Set((0...jobs).map { "late after \($0)" }))
        #expect(summary.coverage.isAll)
    }

    private static let jobs = Int.everyday(160, thorough: 300)

    /// Either task runs first, or the late one after 1, 2, … of the busy one's jobs, except the last.
    @Test(arguments: [(0, 2), (1, jobs + 1)]) func `costs no extra preemption, so a bound holds however late a task is`(
        preemptions: Int, schedules: Int
    ) async throws {
        let summary = try await explore(.exhaustive(preemptions: preemptions)) { simulation in
            simulation.spawn("late") {}
            simulation.spawn("busy") { for _ in 1..<Self.jobs { await Task.yield() } }
        }
        #expect(summary.schedules == schedules)
        #expect(summary.coverage.isAllWithinBounds)
    }

    @Test func `ends at the step limit, so that waiting by yielding ends, and the coverage says so`() async throws {
        let turns = Journal()
        let summary = try await explore(.exhaustive(), stepLimit: 240) { simulation in
            let (flag, spins) = (Tally(), Tally())
            simulation.spawn("waiter") {
                while flag.value == 0 {
                    spins.next()
                    await Task.yield()
                }
                turns.note("\(spins.value)")
            }
            simulation.spawn("setter") { flag.next() }
        }
        #expect(summary.failures == 0)
        #expect(summary.coverage.gaps == [.patience])
        // Every number of spins within the limit; the other steps are the scenario's own, the setter's and the waiter's last.
        #expect(Set(turns.all.compactMap { Int($0) }).isSuperset(of: 0...237))
    }

    @Test func `ends for a task that never stops, with a livelock`() async throws {
        let found = try await failure(.exhaustive(), stepLimit: 300) { simulation in
            simulation.spawn("spinner") { while !Task.isCancelled { await Task.yield() } }
            simulation.spawn("other") {}
        }
        #expect(found.problem?.code == .livelock)
    }

    @Test func `doesn't change a replay, so a failure that needs a very late task occurs again`() async throws {
        let scenario: Scenario = { simulation in
            let order = Journal()
            simulation.spawn("late") { try simulation.require(order.count < 160, "late by 160 steps") }
            simulation.spawn("busy") {
                for _ in 1...160 {
                    order.note("busy")
                    await Task.yield()
                }
            }
        }
        let found = try await failure(.exhaustive(), scenario)
        #expect(found.problem?.detail == "late by 160 steps")
        let again = try await failure(.replay(found.schedule), scenario)
        #expect(again.problem?.detail == "late by 160 steps")
        #expect(again.trace == found.trace)
    }
}
