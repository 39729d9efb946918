import Dispatch
import Interleavings
import Synchronization
import Testing
import TokenServiceConcurrency

/// Correct code whose threads stop at a point while they hold a lock that the explorer does not know.
@Suite struct `Threads that sleep in the kernel` {
    @Test(arguments: [Strategy.exhaustive(preemptions: 1), .mixed(schedules: 40)])
    func `let a cancellation handler go on that stopped at a point`(strategy: Strategy) async throws {
        try await explore(strategy, granularity: .accesses, cancelledWaiter)
    }

    @Test func `let the owner of a plain mutex go on`() async throws {
        let summary = try await explore(.exhaustive(preemptions: 1), granularity: .accesses) { simulation in
            let shared = Shared()
            for name in ["a", "b"] { simulation.spawn(name) { shared.add() } }
            try await simulation.settle()
            try simulation.require(unsafe shared.number.wrappedValue == 2, "no update is lost")
        }
        #expect(summary.schedules > 4)
    }

    @Test func `fail in the same way when replayed`() async throws {
        let found = try await failure(.mixed(schedules: 100), granularity: .accesses, cancelledInOrder)
        #expect(found.problem?.code == .requirement, "\(found)")
        let again = try await failure(.replay(found.schedule), granularity: .accesses, cancelledInOrder)
        #expect(again.problem?.code == .requirement, "\(again)")
    }
}

@Sendable private func cancelledWaiter(_ simulation: Simulation) async throws {
    let ends = Tally()
    let waiter = simulation.spawn("waiter") {
        await withTaskCancellationHandler {
            interleavingPoint("in the operation")
        } onCancel: {
            interleavingPoint("in the handler")
            ends.next()
        }
        interleavingPoint("after the operation")
        ends.next()
    }
    simulation.spawn("canceller") {
        interleavingPoint("before")
        waiter.cancel()
        interleavingPoint("after")
        ends.next()
    }
    try await simulation.settle()
    try simulation.require((2...3).contains(ends.value), "both end")
}

@Sendable private func cancelledInOrder(_ simulation: Simulation) async throws {
    let order = Journal()
    let waiter = simulation.spawn("waiter") {
        await withTaskCancellationHandler {
            interleavingPoint("in the operation")
        } onCancel: {
            order.note("cancelled")
            interleavingPoint("in the handler")
            order.note("handled")
        }
        order.note("over")
    }
    simulation.spawn("canceller") {
        interleavingPoint()
        waiter.cancel()
    }
    try await simulation.settle()
    try simulation.require(order.all != ["cancelled", "handled", "over"], "this order must come up")
}

/// A number under a mutex that the explorer does not know.
private final class Shared: Sendable {
    let mutex = Mutex(())
    // Written under the mutex only, and read at the end.
    nonisolated(unsafe) let number = Interleaved(wrappedValue: 0, "number")

    func add() { mutex.withLock { _ in unsafe number.wrappedValue += 1 } }
}
