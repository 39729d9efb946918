import Dispatch
import Testing
import TokenServiceConcurrency

@testable import Interleavings

@Suite struct `The limit of explorations at once` {
    @Test func `an exploration that waits in real time gives its place to the next one, and gets it back`() async {
        let limiter = ExplorationLimiter(limit: 1)
        let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let secondRan = DispatchSemaphore(value: 0)
        let first = Task(executorPreference: OwnThread()) {
            await limiter.run {
                hasBegun.yield()
                // Under a sanitizer, with hundreds of other tests, the second one may wait for minutes.
                return ExplorationLimiter.waiting { secondRan.wait(timeout: .now() + 600) }
            }
        }
        _ = await begun.first { true }
        await limiter.run { _ = secondRan.signal() }
        #expect(await first.value == .success)
        // Nothing was lost: the limit is still one.
        await limiter.run {}
    }

    @Test func `no exploration runs beside one that runs alone, and no more than the limit beside each other`() async {
        let limiter = ExplorationLimiter(limit: 3)
        let running = Running()
        await withTaskGroup { group in
            for number in 1...200 {
                let runsAlone = number.isMultiple(of: 7)
                group.addTask {
                    await limiter.run(alone: runsAlone) {
                        let beside = running.begin(alone: runsAlone)
                        #expect(runsAlone ? beside.isEmpty : beside.count < 3 && !beside.contains(true))
                        for _ in 1...10 { await Task.yield() }
                        running.end(alone: runsAlone)
                    }
                }
            }
        }
    }
}

/// Which explorations run, and whether each of them runs alone.
private final class Running: Sendable {
    private let explorations = Lock<[Bool]>([])

    func begin(alone: Bool) -> [Bool] {
        explorations.withLock { explorations in
            defer { explorations.append(alone) }
            return explorations
        }
    }

    func end(alone: Bool) {
        explorations.withLock { explorations in
            if let index = explorations.firstIndex(of: alone) { explorations.remove(at: index) }
        }
    }
}
