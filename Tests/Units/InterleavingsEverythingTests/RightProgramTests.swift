#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import TestBudgets
import Testing
import TokenServiceConcurrency

/// A program without a mistake, in a form that published packages use.
struct Program: Sendable, CustomTestStringConvertible {
    /// What an exploration must drive so that nothing of the program escapes.
    enum Need: Sendable {
        /// Tasks that inherit the simulation's executor, and its clock.
        case preferred
        /// All tasks and actors.
        case everything
        /// Queues, and threads that wait.
        case queues

        var drivings: [Driving] {
            switch self {
            case .preferred: [.preferred, .everything]
            case .everything: [.everything, .everythingAndQueues]
            case .queues: [.everythingAndQueues]
            }
        }
    }

    let testDescription: String
    let need: Need
    /// Begins the program, and returns what the sum is in the end.
    let begin: @Sendable (Simulation, Held<Int>) -> Int

    init(_ name: String, _ need: Need, _ begin: @escaping @Sendable (Simulation, Held<Int>) -> Int) {
        (testDescription, self.need, self.begin) = (name, need, begin)
    }

    func run(_ simulation: Simulation) async throws {
        let sum = Held(0)
        let expected = begin(simulation, sum)
        try await simulation.settle()
        try simulation.require(sum.now == expected, "\(sum.now) instead of \(expected)")
    }
}

@Suite struct `Right programs` {
    @Test(arguments: Program.ofActors + Program.ofStreams + Program.ofTasks + Program.ofThreads, [Granularity.jobs, .accesses])
    func `a right program passes and ends in every way to drive it`(_ program: Program, _ granularity: Granularity) async throws {
        for driving in program.need.drivings {
            try await explore(.mixed(schedules: .everyday(15, thorough: 50)), granularity: granularity, driving: driving) {
                try await program.run($0)
            }
        }
    }
}

extension Held<Int> {
    func add(_ number: Int) { with { $0 += number } }
}

/// A flag that is set once, without a lock.
final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    /// - Returns: Whether it was not set before.
    func set() -> Bool { !value.exchange(true, ordering: .acquiringAndReleasing) }
}

struct Refused: Error {}

func refuse() throws { throw Refused() }
#endif
