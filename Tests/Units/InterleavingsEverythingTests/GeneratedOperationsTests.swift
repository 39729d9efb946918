import Interleavings
import InterleavingsEverything
import Synchronization
import Testing
import UntouchedCode

/// A program's operations on a semaphore.
private enum Act: Sendable {
    case wait, signal, cancel
}

/// A semaphore, and the tasks that wait for it.
private final class Waiting: Sendable {
    let semaphore: LineSemaphore
    private let waiters = Mutex<[Task<Void, any Error>]>([])

    init(forgets: Bool) {
        semaphore = LineSemaphore(value: 0, forgets: forgets)
    }

    func perform(_ act: Act) {
        switch act {
        case .wait: waiters.withLock { $0.append(Task { [semaphore] in try await semaphore.wait() }) }
        case .signal: semaphore.signal()
        case .cancel: waiters.withLock { $0.last }?.cancel()
        }
    }

    /// Lets everyone through.
    func end() async {
        let waiters = waiters.withLock { $0 }
        for _ in waiters { semaphore.signal() }
        for waiter in waiters { _ = await waiter.result }
    }
}

@Suite struct `Operations that are generated for untouched code` {
    private static func explore(forgets: Bool) async throws {
        try await exploreOperations(
            [Act.wait, .signal, .cancel], programs: .random(20), schedules: .mixed(schedules: 20), driving: .everything
        ) { simulation in
            (simulation: simulation, waiting: Waiting(forgets: forgets))
        } perform: { scene, act, _ in
            scene.waiting.perform(act)
        } check: { scene in
            await scene.waiting.end()
            try scene.simulation.require(scene.waiting.semaphore.surplusResumes == 0, "a task in line is resumed once")
        }
    }

    @Test func `find that a semaphore resumes a task twice, and shrink to waiting, signalling and cancelling`() async throws {
        let failure = try await #require(throws: ScheduleFailure.self) { try await Self.explore(forgets: false) }
        let program = try #require(failure.program)
        #expect(program.tasks.joined().sorted() == [0, 1, 2])
        #expect(failure.replayLine.contains(", driving: .everything) …"))
    }

    @Test func `pass for a semaphore that resumes a task once`() async throws {
        try await Self.explore(forgets: true)
    }
}
