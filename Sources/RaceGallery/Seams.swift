import AccessTokens
import Dispatch
import Interleavings

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A service's dependencies on its surroundings: the simulation's clock, executor and queues.
///
/// In a simulation that drives everything, a service takes none of them and uses what any program uses: the continuous clock, the
/// default pool and real queues. So the same source code runs in both ways.
package struct Seams: Sendable {
    private let simulation: Simulation

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    /// The clock that measures time.
    package var clock: any Clock<Duration> { simulation.drivesEverything ? ContinuousClock() : simulation.clock }

    /// Where plain tasks run; `nil`: on the default pool.
    package var executor: (any TaskExecutor)? { simulation.drivesEverything ? nil : simulation.taskExecutor }

    /// Creates a serial queue, and returns a closure that enqueues a block there.
    func serialQueue(_ label: String) -> @Sendable (_ block: @escaping @Sendable () -> Void) -> Void {
        if simulation.drivesEverything {
            let queue = DispatchQueue(label: label)
            return { queue.async(execute: $0) }
        }
        let queue = simulation.serialQueue(label)
        return { queue.async($0) }
    }

    /// The environment of a `TokenService`; the default one if nothing is taken.
    ///
    /// - Parameters:
    ///   - executor: Where everything runs instead; `nil`: on ``executor``.
    ///   - wallClock: The wall clock of a scenario that sets it; `nil`: the default.
    func environment(
        executor: (any TaskExecutor)? = nil, wallClock: (@Sendable () -> Date)? = nil
    ) -> TokenService.Environment {
        guard let executor = executor ?? self.executor else { return TokenService.Environment() }
        return .driven(
            by: executor, clock: clock, wallClock: wallClock ?? { Date(timeIntervalSince1970: 0) }, seed: 1)
    }
}

extension Simulation {
    /// The dependencies that this simulation provides.
    package var seams: Seams { Seams(self) }
}
