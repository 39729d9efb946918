import Dispatch
import Interleavings
import InterleavingsEverything
import TestBudgets
import Testing
import UntouchedCode

/// Three serial queues, each of which runs its work in the next: Dispatch usually runs each program in one order, the explorer
/// always.
@Suite struct `Chains of target queues` {
    struct Chain: Sendable {
        let bottom = DispatchQueue(label: "bottom")
        let middle: DispatchQueue
        let top: DispatchQueue
        let notes = Notes()

        init() {
            middle = DispatchQueue(label: "middle", target: bottom)
            top = DispatchQueue(label: "top", target: middle)
        }

        func add(_ note: String, to queue: DispatchQueue) { queue.async { notes.add(note) } }

        /// Waits until the work that has entered each queue is done.
        func drain() { for queue in [top, middle, bottom] { queue.sync {} } }
    }

    struct Program: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let order: String
        let run: @Sendable (Chain) -> Void
    }

    private static let programs = [
        Program(testDescription: "sync behind a queue's own work", order: "12345") { chain in
            chain.add("1", to: chain.top)
            chain.add("2", to: chain.middle)
            chain.add("3", to: chain.bottom)
            chain.top.sync { chain.notes.add("4") }
            chain.middle.sync { chain.notes.add("5") }
        },
        Program(testDescription: "sync behind the work of a queue in between", order: "1234") { chain in
            chain.add("1", to: chain.middle)
            chain.add("2", to: chain.bottom)
            chain.top.sync { chain.notes.add("3") }
            chain.bottom.sync { chain.notes.add("4") }
        },
        Program(testDescription: "work while the bottom is held", order: "125436") { chain in
            chain.bottom.sync {
                chain.add("1", to: chain.middle)
                chain.add("2", to: chain.top)
                chain.add("3", to: chain.bottom)
                chain.add("4", to: chain.middle)
                chain.add("5", to: chain.top)
                chain.add("6", to: chain.bottom)
            }
        },
        Program(testDescription: "work while a thread has the top", order: "321") { chain in
            chain.top.sync {
                chain.add("1", to: chain.top)
                chain.add("2", to: chain.middle)
                chain.add("3", to: chain.bottom)
            }
        },
        Program(testDescription: "work while a thread has the middle", order: "312") { chain in
            chain.middle.sync {
                chain.add("1", to: chain.top)
                chain.add("2", to: chain.middle)
                chain.add("3", to: chain.bottom)
            }
        },
    ]

    @Test func `work if only the queue keeps its target alive`() async throws {
        try await explore(.mixed(schedules: 20), driving: .everythingAndQueues) { simulation in
            let queue = DispatchQueue(label: "queue", target: DispatchQueue(label: "target")), notes = Notes()
            simulation.spawn("caller") {
                queue.async { notes.add("1") }
                queue.sync { notes.add("2") }
            }
            try await simulation.settle()
            try simulation.require(notes.all == ["1", "2"], "\(notes.all)")
        }
    }

    @Test(arguments: programs, [Granularity.jobs, .accesses])
    func `run their work in the order of Dispatch`(_ program: Program, _ granularity: Granularity) async throws {
        let orders = (1...100).map { _ in
            let chain = Chain()
            program.run(chain)
            chain.drain()
            return chain.notes.all.joined()
        }
        // Dispatch's threads race: once in thousands of runs an intermediate queue moves to the end of its target's queue.
        try #require(orders.contains(program.order), "\(Set(orders))")
        let strategy = Strategy.mixed(schedules: .everyday(60, thorough: 300))
        try await explore(strategy, granularity: granularity, driving: .everythingAndQueues) { simulation in
            let chain = Chain()
            simulation.spawn("caller") {
                program.run(chain)
                chain.drain()
            }
            try await simulation.settle()
            try simulation.require(chain.notes.all.joined() == program.order, "\(chain.notes.all)")
        }
    }
}
