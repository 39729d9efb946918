import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import Testing

@Suite struct `An operation queue of Foundation` {
    @Test func `is driven with queues, so that its operations come in every order`() async throws {
        let orders = Mutex<Set<[String]>>([])
        let summary = try await explore(.exhaustive(delays: 2), driving: .everythingAndQueues) { _ in
            let queue = OperationQueue(), notes = Notes()
            for name in ["a", "b"] { queue.addOperation { notes.add(name) } }
            await withCheckedContinuation { continuation in queue.addBarrierBlock { continuation.resume() } }
            orders.withLock { _ = $0.insert(notes.all) }
        }
        #expect(summary.failures == 0)
        #expect(orders.withLock { $0 } == [["a", "b"], ["b", "a"]])
    }
}
