@testable import Interleavings
import Testing
import TokenServiceConcurrency

@Suite("Semaphores on controlled threads")
struct SemaphoreTests {
    @Test("who waits goes on after the signal, whoever comes first")
    func signal() async throws {
        let summary = try await explore(.exhaustive(), granularity: .accesses) { simulation in
            let isDone = InterleavedSemaphore("done"), value = Lock(0)
            simulation.spawn("waits") {
                isDone.wait()
                try simulation.require(value.withLock { $0 } == 1, "nobody passes before the signal")
            }
            simulation.spawn("signals") {
                value.withLock { $0 = 1 }
                isDone.signal()
            }
        }
        #expect(summary.isComplete && summary.schedules > 2)
    }

    @Test("as many pass as its value and its signals are", arguments: [0, 1, 2])
    func count(value: Int) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(granularity: .accesses) { simulation in
                let places = InterleavedSemaphore("places", value: value)
                for number in 0...(value + 1) { simulation.spawn("guest \(number)") { places.wait() } }
                simulation.spawn("host") { places.signal() }
            }
        }
        let problem = failure?.underlying as? ExplorationProblem
        #expect(problem?.code == .deadlock)
        #expect(problem?.tasks.count == 1, "one more than there are places waits for ever")
        #expect(problem?.description.contains("waits for the lock 'places'") == true)
    }

    @Test("outside an exploration it is a plain semaphore")
    func plain() {
        let semaphore = InterleavedSemaphore("plain", value: 1)
        semaphore.wait()
        semaphore.signal()
        semaphore.wait()
    }
}
