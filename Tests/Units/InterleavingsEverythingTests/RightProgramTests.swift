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

    /// The task sleeps in the kernel while the handler has stopped, and the step that wakes it looks at once whether it has ended.
    @Test(arguments: [Strategy.exhaustive(limit: 100), .random(schedules: 30)])
    func `a cancelled task whose handler takes a plain lock does the same in each replay`(_ strategy: Strategy) async throws {
        try await explore(strategy, granularity: .accesses, driving: .everything) { simulation in
            simulation.spawn("a") {
                let task = Task { try await CancellableCall().run() }
                await Task.yield()
                task.cancel()
                _ = await task.result
            }
        }
    }
}

/// A call that ends or is cancelled, whatever comes first.
private final class CancellableCall: Sendable {
    private enum State { case idle, running(CheckedContinuation<Void, any Error>), over }

    private let state = Held(State.idle)

    func run() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                let isOver = state.with { state in
                    if case .over = state { return true }
                    state = .running(waiter)
                    return false
                }
                guard !isOver else { return waiter.resume(throwing: CancellationError()) }
                Task { end(with: .success(())) }
            }
        } onCancel: {
            end(with: .failure(CancellationError()))
        }
    }

    private func end(with result: Result<Void, any Error>) {
        let waiter: CheckedContinuation<Void, any Error>? = state.with { state in
            defer { state = .over }
            if case .running(let waiter) = state { return waiter }
            return nil
        }
        waiter?.resume(with: result)
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
