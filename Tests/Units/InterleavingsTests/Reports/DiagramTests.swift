import Interleavings
import Testing

@Suite struct `A failure's diagram` {
    typealias Scenario = @Sendable (Simulation) async throws -> Void

    private func diagram(
        _ schedule: String, _ granularity: Granularity, _ scenario: @escaping Scenario
    ) async throws -> String {
        let failure = await #expect(throws: ScheduleFailure.self) {
            // As the catalog's readers see it, whose programs link no doors.
            try await Overrides.unaided { try await explore(.replay(schedule), granularity: granularity, scenario) }
        }
        return try #require(failure).diagram
    }

    @Test func `shows an update that is lost between a read and a write`() async throws {
        let diagram = try await diagram("1.0.1", .accesses, Races.lostUpdate)
        #expect(
            diagram == """
                step  scenario            deposit 10            deposit 5
                   2  │                   ○                     ► starts
                   3  │                   │                     ● reads balance: 0
                   4  │                   ► starts              ○
                   5  │                   ● reads balance: 0    │
                   6  │                   ● writes balance: 10  │
                      │                   │ ends                │
                   7  │                                         ● writes balance: 5
                      │                                         │ ends
                   9  ● reads balance: 5
                      ✘ the balance is 5, not 15

                ✘ the balance is 5, not 15

                ● did something   ✘ failed
                ► the schedule left the usual order here; ○ would have run
                """)
    }

    @Test func `shows which task waits for which lock, without the scenario's idle task`() async throws {
        let diagram = try await diagram("0.0.1", .accesses, Races.lockOrder)
        #expect(
            diagram == """
                step  reader                        writer
                   2  ● starts
                   3  ● takes the lock 'cache'
                   4  ○                             ► starts
                   5  │                             ● takes the lock 'store'
                   6  │                             ● waits for the lock 'cache'
                   7  ● waits for the lock 'store'  │
                      ✘ waits forever               │
                      │                             ✘ waits forever

                ✘ Deadlock: nothing can run and no timer is pending, but these have not ended:
                  'reader', 'writer'. 'writer' waits for the lock 'cache', which 'reader' holds.
                  'reader' waits for the lock 'store', which 'writer' holds.

                ● did something   ✘ failed
                ► the schedule left the usual order here; ○ would have run
                """)
    }

    @Test func `shows events on an actor, and a task that waits forever`() async throws {
        let diagram = try await diagram("0.0.1", .jobs, Races.lostWakeUp)
        #expect(
            diagram == """
                step  waiter                             sender
                   2  ● starts
                   3  ● on mailbox: there is no message
                   4  ○                                  ► starts
                   5  │                                  ● on mailbox: finds no waiter
                   6  │                                  ● ends
                   7  •
                   8  ● on mailbox: waits for a message
                      ✘ waits forever

                ✘ Deadlock: nothing can run and no timer is pending, but these have not ended:
                  'waiter'. Or one of them awaits something slow outside the simulation, such as
                  Task.sleep: use simulation.clock.

                ● did something   • ran, logged nothing   ✘ failed
                ► the schedule left the usual order here; ○ would have run
                """)
    }

    @Test func `draws a line where time moves, also for a schedule without a switch`() async throws {
        let diagram = try await diagram("", .jobs, naiveCallers)
        #expect(
            diagram == """
                step  scenario  caller 1         caller 2
                   2  │         ● starts
                   3  │         ● load 1 begins
                   4  │         •
                   5  │         │                ● starts
                   6  │         │                ● load 2 begins
                   7  │         │                •
                ── 1 s ─────────────────────────────────────────
                   9  │         •                │
                  10  │         ● load 1 ends    │
                  11  │         ● ends: 1        │
                  12  │                          •
                  13  │                          ● load 2 ends
                  14  │                          ● ends: 2
                  15  ✘ one load for all

                ✘ one load for all

                ● did something   • ran, logged nothing   ── time moved on   ✘ failed
                The usual order fails: a task runs while it can, then the longest-waiting one.
                """)
    }

    @Test func `has a column for each queue, and one for its blocks together`() async throws {
        let diagram = try await diagram("", .jobs, Races.overdraft)
        #expect(
            diagram == """
                step  scenario  state       network
                   2  │         ● has 80
                   3  │         ● has 50
                   4  │         │           ● pays 80
                   5  │         │           ● pays 50
                   6  │         ● books 80  │
                   7  │         ● books 50  │
                   8  ✘ the account is not overdrawn

                ✘ the account is not overdrawn

                ● did something   ✘ failed
                The usual order fails: a task runs while it can, then the longest-waiting one.
                """)
    }

    @Test func `ends with the failure`() async throws {
        let diagram = try await diagram("", .jobs) { simulation in
            let task = simulation.spawn("checker") {
                simulation.log("looks")
                try simulation.require(false, "all is well")
            }
            try await task.value
        }
        #expect(
            diagram.hasPrefix(
                """
                step  checker
                   2  ● looks
                      ✘ all is well

                ✘ all is well

                """), "\(diagram)")
    }

    @Test func `gives two tasks of the same name separate columns`() async throws {
        let diagram = try await diagram("", .jobs) { simulation in
            let tasks = (1...2).map { number in simulation.spawn("caller") { simulation.log("is number \(number)") } }
            for task in tasks { try await task.value }
            try simulation.require(false, "as it must")
        }
        #expect(diagram.hasPrefix("step  scenario  caller         caller (2)\n"), "\(diagram)")
    }

    @Test func `shows a function as one letter, inside a value too`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses) { simulation in
                let desk = Desk()
                desk.handlers.append { _ in }
                desk.handlers.append { _ in }
                try simulation.require(desk.handlers.isEmpty, "as it must")
            }
        }
        let diagram = try #require(failure).diagram
        #expect(diagram.contains("writes handlers: [ƒ, ƒ]") && !diagram.contains("Function"), "\(diagram)")
    }

    @Test func `evaluates its texts without adding steps`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses) { simulation in
                let account = Account()
                let deposits = [10, 5].map { amount in
                    simulation.spawn("deposit \(amount)") {
                        // A log's text is evaluated only if there is a trace.
                        simulation.log("finds \(account.balance)")
                        account.balance += amount
                    }
                }
                for deposit in deposits { try await deposit.value }
                try simulation.require(account.balance == 15, "an update is lost")
            }
        }
        let problem = try #require(failure?.underlying as? ExplorationProblem)
        #expect(problem.detail == "an update is lost")
        #expect(failure?.diagram.contains("finds 0") == true)
    }
}
