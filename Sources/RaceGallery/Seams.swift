import AccessTokens
import Dispatch
import Interleavings

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a service takes from the world around it: the simulation's clock, executor and queues.
///
/// In a simulation that drives everything a service takes nothing. It has what a program has: the continuous clock, the
/// default pool and real queues. So the same sources run with their seams and untouched.
package struct Seams: Sendable {
    private let simulation: Simulation

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    /// What time is measured with.
    package var clock: any Clock<Duration> { simulation.drivesEverything ? ContinuousClock() : simulation.clock }

    /// Where plain tasks run; `nil`: on the default pool.
    package var executor: (any TaskExecutor)? { simulation.drivesEverything ? nil : simulation.taskExecutor }

    /// Makes a serial queue, and returns what enqueues a block there.
    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void {
        if simulation.drivesEverything {
            let queue = DispatchQueue(label: label)
            return { queue.async(execute: $0) }
        }
        let queue = simulation.serialQueue(label)
        return { queue.async($0) }
    }

    /// What a `TokenService` takes; its default where nothing is taken.
    ///
    /// - Parameters:
    ///   - executor: Where everything runs instead; `nil`: on ``executor``.
    ///   - wallClock: What a scenario needs that sets the wall clock; `nil`: the default.
    func environment(
        executor: (any TaskExecutor)? = nil, wallClock: (@Sendable () -> Date)? = nil
    ) -> TokenService.Environment {
        guard let executor = executor ?? self.executor else { return TokenService.Environment() }
        return .driven(
            by: executor, clock: clock, wallClock: wallClock ?? { Date(timeIntervalSince1970: 0) }, seed: 1)
    }
}

extension Simulation {
    /// What a service takes from this simulation.
    package var seams: Seams { Seams(self) }
}
