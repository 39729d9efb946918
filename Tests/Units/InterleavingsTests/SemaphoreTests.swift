@testable import Interleavings
import Testing
import TokenServiceConcurrency

@Suite struct `Semaphores on controlled threads` {
    @Test func `let a waiting thread pass after the signal, in every order`() async throws {
        let summary = try await explore(.exhaustive(), granularity: .accesses) { simulation in
            let isDone = InterleavedSemaphore("done"), value = Lock(0)
            simulation.spawn("waits") {
                isDone.wait()
                try simulation.require(value.withLock { $0 } == 1, "no thread passes before the signal")
            }
            simulation.spawn("signals") {
                value.withLock { $0 = 1 }
                isDone.signal()
            }
        }
        #expect(summary.coverage.isAll && summary.schedules > 2)
    }

    @Test(arguments: [0, 1, 2])
    func `let as many threads pass as their value and their signals allow`(value: Int) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses) { simulation in
                let places = InterleavedSemaphore("places", value: value)
                for number in 0...(value + 1) { simulation.spawn("guest \(number)") { places.wait() } }
                simulation.spawn("host") { places.signal() }
            }
        }
        let problem = failure?.underlying as? ExplorationProblem
        #expect(problem?.code == .deadlock)
        #expect(problem?.tasks.count == 1, "one thread more than there are places waits forever")
        #expect(problem?.description.contains("waits for the lock 'places'") == true)
    }

    @Test func `are plain semaphores outside an exploration`() {
        let semaphore = InterleavedSemaphore("plain", value: 1)
        semaphore.wait()
        semaphore.signal()
        semaphore.wait()
    }
}
