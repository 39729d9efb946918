import Dispatch
import Testing

@testable import Interleavings

@Suite struct `The limit of explorations at once` {
    @Test func `an exploration that waits in real time gives its place to the next one, and gets it back`() async {
        let limiter = ExplorationLimiter(limit: 1)
        let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let secondRan = DispatchSemaphore(value: 0)
        let first = Task {
            await limiter.run {
                hasBegun.yield()
                // Under a sanitizer, among hundreds of tests, the second one may wait for minutes.
                return ExplorationLimiter.waiting { secondRan.wait(timeout: .now() + 600) }
            }
        }
        _ = await begun.first { true }
        await limiter.run { _ = secondRan.signal() }
        #expect(await first.value == .success)
        // Nothing was lost: the limit is still one.
        await limiter.run {}
    }
}
