import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import Testing
import UntouchedCode

/// Typical services with plain tasks and sleeps, each with its bug and without it.
@Suite struct `Services that know nothing of the explorer` {
    @Test(arguments: [false, true])
    func `an image cache whose failed download removes its successor downloads an image twice`(isMended: Bool) async throws {
        let summary = try await explore(.exhaustive(delays: 3), driving: .everything, countsFailures: true) { simulation in
            let downloads = Count()
            let cache = ImageCache(compares: isMended) { path in
                downloads.add()
                try await Task.sleep(for: .seconds(1))
                return path
            }
            let first = Task { try await cache.image("cover") }
            try await Task.sleep(for: .milliseconds(500))
            await cache.clear()
            let present = downloads.value
            async let second = cache.image("cover")
            async let third = cache.image("cover")
            _ = await (try? second, try? third, first.result)
            try simulation.require(downloads.value <= present + 1, "one download for two callers")
        }
        try expect(summary, isMended)
    }

    @Test(arguments: [false, true])
    func `a connection that is stopped during an attempt shows the attempt's end`(isMended: Bool) async throws {
        let summary = try await explore(.exhaustive(), driving: .everything, countsFailures: true) { simulation in
            let attempts = Count()
            let reconnector = await Reconnector(checksAgain: isMended) {
                // The server doesn't notice a cancellation, and can be reached from the third attempt on.
                await Task.detached { try? await Task.sleep(for: .seconds(1)) }.value
                if attempts.add() < 3 { throw CancellationError() }
            }
            await reconnector.start()
            // Attempts begin at 0, 2 and 5 seconds.
            try await Task.sleep(for: .seconds(simulation.choose("the second of the stop", among: [1, 2, 5, 7]) ?? 1))
            await reconnector.stop()
            try await simulation.settle()
            let state = await reconnector.state
            try simulation.require(state == .stopped, "it is \(state)")
        }
        try expect(summary, isMended)
    }

    @Test(arguments: [false, true])
    func `a semaphore whose cancelled task keeps its turn blocks all later tasks`(isMended: Bool) async throws {
        let summary = try await explore(.exhaustive(delays: 2), driving: .everything, countsFailures: true) { simulation in
            let semaphore = TaskSemaphore(passesOn: isMended), inside = Count()
            let tasks = (1...3).map { number in
                simulation.spawn("task \(number)") {
                    try await semaphore.wait()
                    try simulation.require(inside.add() == 1, "one at a time")
                    try? await Task.sleep(for: .seconds(1))
                    inside.add(-1)
                    await semaphore.signal()
                }
            }
            // At the moment when the first one leaves and the second gets its turn.
            try await Task.sleep(for: .seconds(1))
            tasks[1].cancel()
            for task in tasks { _ = await task.result }
        }
        // In release builds the library's own functions return to the actor through its queue.
        try expect(summary, isMended, allowing: [.returns])
    }

    /// Cancels after the signal, and before the waiting task continues.
    @Sendable private static func cancelsASignalledTask(_ simulation: Simulation, _ semaphore: LineSemaphore) async throws {
        let waiter = simulation.spawn("waiter") { try await semaphore.wait() }.allowingError()
        simulation.spawn("worker") { semaphore.signal() }
        simulation.spawn("user") { waiter.cancel() }
        try await simulation.settle()
        try simulation.require(semaphore.surplusResumes == 0, "a task in line is resumed once")
    }

    // groue/Semaphore@2543679, `waitUnlessCancelled`.
    @Test(arguments: [false, true])
    func `a semaphore that doesn't forget a signalled task resumes it again when it is cancelled`(isMended: Bool) async throws {
        let summary = try await explore(.exhaustive(), driving: .everything, countsFailures: true) { simulation in
            try await Self.cancelsASignalledTask(simulation, LineSemaphore(value: 0, forgets: isMended))
        }
        try expect(summary, isMended)
        #expect(summary.coverage.isAll)
    }

    #if DEBUG
    @Test func `the guide says in which schedule the semaphore's second resume is found`() async throws {
        let found = await #expect(throws: ScheduleFailure.self) {
            try await explore(driving: .everything) { simulation in
                try await Self.cancelsASignalledTask(simulation, LineSemaphore(value: 0, forgets: false))
            }
        }
        let page = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }.appending(
            path: "Sources/InterleavingsEverything/InterleavingsEverything.docc/ExploringCodeYouCantChange.md")
        let number = try #require(found).number
        let place = "[groue/Semaphore](https://github.com/groue/Semaphore) @2543679"
        let row = "| a task in line is resumed twice | \(place) | \(number) |"
        #expect(try String(contentsOf: page, encoding: .utf8).contains(row), "\(row)")
    }
    #endif

    private func expect(
        _ summary: ExplorationSummary, _ isMended: Bool, allowing gaps: Set<Coverage.Gap> = []
    ) throws {
        #expect((summary.failures == 0) == isMended, "\(summary)")
        #expect(gaps.isSuperset(of: summary.coverage.gaps), "\(summary)")
    }
}

private final class Count: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    @discardableResult
    func add(_ number: Int = 1) -> Int {
        count.withLock { count in
            count += number
            return count
        }
    }
}
