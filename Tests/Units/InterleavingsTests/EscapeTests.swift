import Dispatch
import Foundation
import Interleavings
import TestBudgets
import Testing

@Suite struct `Escapes` {
    /// Ways to leave the explorer's control, and the remedy that the report must name for each.
    enum Way: String, CaseIterable, CustomTestStringConvertible {
        case taskSleep, clockSleep, task, detached, immediate, queue, delayedQueue, mainActor

        var testDescription: String { rawValue }

        var remedy: String {
            switch self {
            case .taskSleep, .clockSleep: "simulation.clock"
            case .task, .detached, .immediate: "executorPreference: simulation.taskExecutor"
            case .queue, .delayedQueue: "simulation.serialQueue"
            case .mainActor: "simulation.actorExecutor"
            }
        }

        func go() async throws {
            switch self {
            case .taskSleep: try await Task.sleep(nanoseconds: 1_000_000)
            case .clockSleep: try await ContinuousClock().sleep(for: .milliseconds(1))
            case .task: await Task { await Escapes.pause() }.value
            case .detached: await Task.detached { await Escapes.pause() }.value
            case .immediate:
                if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                    await Task.immediate { await Escapes.pause() }.value
                } else {
                    await Task { await Escapes.pause() }.value
                }
            case .queue:
                await withCheckedContinuation { waiter in
                    DispatchQueue.global().async {
                        Escapes.block()
                        waiter.resume()
                    }
                }
            case .delayedQueue:
                await withCheckedContinuation { waiter in
                    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { waiter.resume() }
                }
            case .mainActor: await MainActor.run { Escapes.block() }
            }
        }
    }

    @Test(arguments: Way.allCases)
    func `are found, and the report says what to use instead`(way: Way) async throws {
        let found = try await failure(.mixed(schedules: 5)) { simulation in
            let caller = simulation.spawn("caller") { try await way.go() }
            try await caller.value
        }
        #expect(found.problem?.code == .escape)
        #expect(found.problem?.detail.contains("'caller'") == true)
        #expect(found.problem?.tasks.contains("scenario") == true)
        #expect("\(found)".contains(way.remedy))
        // The report names the driving mode that needs no seams, and doesn't promise that the schedule recurs.
        #expect("\(found)".contains("driving: .everything"))
        #expect(!"\(found)".contains("To see it again"))
    }

    @Test(arguments: Way.allCases)
    func `are found on controlled threads`(way: Way) async throws {
        let found = try await failure(.mixed(schedules: 5), granularity: .accesses) { _ in try await way.go() }
        #expect(found.problem?.code == .escape)
    }

    @Test func `are found while another task is busy`() async throws {
        let found = try await failure(.mixed(schedules: 5), stepLimit: 10_000_000) { simulation in
            let flag = Tally()
            simulation.spawn("busy") { while flag.value == 0 && !Task.isCancelled { await Task.yield() } }
            await Task.detached { await Escapes.pause() }.value
            flag.next()
        }
        #expect(found.problem?.code == .escape)
    }

    @Test func `are counted, and late work ends`() async throws {
        let ends = Tally(), schedules = Int.everyday(10, thorough: 40)
        let summary = try await explore(.random(schedules: schedules), countsFailures: true) { simulation in
            simulation.spawn("caller") {
                // On a busy machine the caller's thread may pause for longer than usual before it suspends.
                await Task.detached { await Escapes.pause(.milliseconds(50)) }.value
                await Task.yield()
                try? await simulation.clock.sleep(for: .seconds(1))
                ends.next()
            }
        }
        #expect(summary.failures == schedules)
        // Each execution ends its own task, during the execution or soon after.
        while ends.value <= schedules { await Task.yield() }
    }

    /// Long enough for the awaiting task to suspend; work that ends before that isn't noticed.
    fileprivate static func pause(_ duration: Duration = .milliseconds(5)) async {
        try? await Task.sleep(for: duration)
    }

    /// The same, on a thread.
    fileprivate static func block() { Thread.sleep(forTimeInterval: 0.005) }

    /// An outside task that the execution never awaits runs beside it at any time, and a schedule that depends on it does
    /// not replay.
    @Test func `that nothing awaits are not noticed`() async throws {
        let mutations = Tally()
        try await explore(.mixed(schedules: 5)) { simulation in
            simulation.spawn("starter") { _ = Task.detached { mutations.next() } }
        }
        while mutations.value < 6 { await Task.yield() }
    }
}
