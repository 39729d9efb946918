import Foundation
import TokenServiceConcurrency
@testable import Interleavings
import TestBudgets
import Testing

/// Thousands of failing executions in a separate process, whose threads and memory are measured.
@Suite struct `Counting failures` {
    @Test(.thorough) func `needs no more memory or threads for thousands of failures than for hundreds`() async {
        await #expect(processExitsWith: .success) {
            let kinds: [(Granularity, Scenario)] = [
                (
                    .jobs,
                    { simulation in
                        simulation.spawn("waiter") { try? await simulation.clock.sleep(for: .seconds(1)) }
                        try simulation.require(false, "in vain")
                    }
                ),
                (.jobs, { _ in throw Stop() }),
                (
                    .jobs,
                    { simulation in
                        let gate = Waiting()
                        simulation.spawn("waiter") { await gate.enter() }
                        await gate.enter()
                    }
                ),
                (
                    .jobs,
                    { simulation in
                        simulation.spawn("spinner") { while !Task.isCancelled { await Task.yield() } }
                    }
                ),
                (.accesses, lostUpdate),
                (.accesses, twoLocks),
            ]
            for (granularity, scenario) in kinds {
                _ = try await count(500, granularity, scenario)
                let before = Usage.current
                let failures = try await count(granularity == .jobs ? 2_000 : 1_000, granularity, scenario)
                let after = Usage.current
                #expect(failures > 200)
                #expect(after.kilobytes - before.kilobytes < 4_000)
                #expect(after.threads - before.threads < 8)
            }
        }
    }

    /// The explored program leaks its tasks that wait forever; the engine is freed.
    @Test(.thorough) func `with lost continuations keeps little more memory than the explored program leaks`() async {
        await #expect(processExitsWith: .success) {
            _ = try await count(1_000, .jobs) { _ in await waitForEver() }
            let before = Usage.current
            _ = try await count(5_000, .jobs) { _ in await waitForEver() }
            #expect(Usage.current.kilobytes - before.kilobytes < 20_000)
        }
    }

    @Test func `goes on to the end and keeps the first failure, shrunk`() async throws {
        let summary = try await explore(
            .random(schedules: 300), granularity: .accesses, countsFailures: true, lostUpdate)
        #expect(summary.schedules == 300)
        #expect(summary.failures > 0 && summary.failures < 300)
        #expect(summary.firstFailure?.problem?.detail == "no update is lost")
    }

    @Test func `ends when the exploring task is cancelled`() async throws {
        // The exploration may have to wait for its turn, so don't keep a processor busy meanwhile.
        let (runs, run) = AsyncStream.makeStream(of: Void.self)
        let exploring = Task {
            try await explore(.random(schedules: .max), countsFailures: true) { _ in run.yield() }
        }
        _ = await runs.dropFirst(9).first { true }
        exploring.cancel()
        await #expect(throws: CancellationError.self) { try await exploring.value }
    }
}

private func count(_ schedules: Int, _ granularity: Granularity, _ scenario: @escaping Scenario) async throws -> Int {
    try await explore(
        .random(schedules: schedules), granularity: granularity, stepLimit: 50, countsFailures: true, scenario
    ).failures
}

/// The second task that enters waits until cancelled.
private final class Waiting: Sendable {
    private let state = Lock<(isTaken: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

    func enter() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let goesOn = state.withLock { state in
                    if Task.isCancelled || !state.isTaken {
                        state.isTaken = true
                        return true
                    }
                    state.waiter = waiter
                    return false
                }
                if goesOn { waiter.resume() }
            }
        } onCancel: {
            state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }?.resume()
        }
    }
}

/// This process's memory and threads; zero without `/proc`.
private struct Usage {
    let kilobytes: Int
    let threads: Int

    static var current: Usage {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        func number(_ name: String) -> Int {
            status.split(separator: "\n").first { $0.hasPrefix(name) }
                .flatMap { Int($0.filter(\.isNumber)) } ?? 0
        }
        // A sanitizer's shadow memory must not be counted.
        guard number("VmSize:") < 1 << 30 else { return Usage(kilobytes: 0, threads: 0) }
        return Usage(kilobytes: number("VmRSS:"), threads: number("Threads:"))
    }
}
