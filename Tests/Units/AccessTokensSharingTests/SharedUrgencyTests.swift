import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 15 with a shared grant")
struct SharedUrgencyTests {
    @Test(arguments: [true, false])
    func `a load is as urgent as a caller who joined while the record was read, or later`(isEarly: Bool) {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader()
        let service = TokenService(
            sharedStore: SimulatedSharedStore(clock: clock, latency: .seconds(1)), environment: .driven(by: stage, clock: clock),
            loader: loader)
        let next = stage.start { try await loader.nextCall() }
        _ = stage.start(priority: .background) { try await service.retrieveToken() }
        if isEarly { _ = stage.start(priority: .high) { try await service.retrieveToken() } }
        for _ in 1...10 where next.value == nil {
            clock.advance(by: .seconds(1))
            stage.run()
        }
        if !isEarly { _ = stage.start(priority: .high) { try await service.retrieveToken() } }
        #expect(next.value?.priority == .high)
    }

    /// Notes the priority of each read and write, and again when it may answer.
    private final class NotingStore: SharedTokenStore {
        let priorities = Log<TaskPriority>()
        private let memory = InMemorySharedTokenStore()
        private let gates: [SingleResult<Void>]
        private let operations = Lock(0)

        /// - Parameter held: The number of the operation that waits until ``answer()``.
        init(holding held: Int?) {
            gates = (0..<10).map { number in
                let gate = SingleResult<Void>()
                if number != held { gate.complete(with: .success(())) }
                return gate
            }
        }

        func answer() { gates.forEach { $0.complete(with: .success(())) } }

        private func note() async throws {
            priorities.append(Task.currentPriority)
            let number = operations.withLock { operations in
                defer { operations += 1 }
                return operations
            }
            if gates.indices.contains(number) { try await gates[number].value() }
            priorities.append(Task.currentPriority)
        }

        @concurrent func load() async throws -> SharedRecord? {
            try await note()
            return await memory.load()
        }

        @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
            try await note()
            return await memory.swap(bytes, ifAt: revision)
        }
    }

    private struct World {
        let stage = Stage(), loader = ScriptedLoader()
        let store: NotingStore
        let service: TokenService

        init(holding held: Int? = nil) {
            store = NotingStore(holding: held)
            service = TokenService(
                sharedStore: store, environment: .driven(by: stage, clock: ManualClock()), loader: loader)
        }

        func call(_ priority: TaskPriority) -> Task<AccessToken, any Error> {
            let caller = Task(executorPreference: stage, priority: priority) { [service] in try await service.retrieveToken() }
            stage.run()
            return caller
        }

        /// The load, once the record is marked.
        func load() throws -> ScriptedLoader.Call {
            guard let load = stage.start({ [loader] in try await loader.nextCall() }).value else { throw Missing() }
            return load
        }
    }

    @Test func `15: the record is read, marked and written as urgently as the load`() throws {
        let world = World()
        _ = world.call(.high)
        try world.load().succeed(with: .granted("a"))
        world.stage.run()
        #expect(world.store.priorities.entries == Array(repeating: .high, count: 6))
    }

    @Test(arguments: [0, 1], [true, false])
    func `15: a more urgent caller raises the priority of a read or a mark that is under way`(held: Int, joins: Bool) throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let world = World(holding: held), caller = world.call(.low)
        if joins { _ = world.call(.high) } else { caller.escalatePriority(to: .high) }
        world.stage.run()
        world.store.answer()
        world.stage.run()
        let before = Array(repeating: TaskPriority.low, count: 2 * held + 1)
        #expect(world.store.priorities.entries == before + Array(repeating: .high, count: 3 - 2 * held))
        #expect(try world.load().priority == .high)
    }

    @Test func `15: a more urgent caller raises the priority of the write of its token`() throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let world = World(holding: 2)
        _ = world.call(.low)
        try world.load().succeed(with: .granted("a"))
        world.stage.run()
        _ = world.call(.high)
        world.store.answer()
        world.stage.run()
        #expect(world.store.priorities.entries == Array(repeating: .low, count: 5) + [.high])
    }
}
