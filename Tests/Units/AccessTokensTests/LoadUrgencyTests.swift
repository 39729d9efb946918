import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

@Suite("Guarantee 15: a load is as urgent as those who wait for it, whatever comes between")
struct LoadUrgencyTests {
    @Test func `a caller that becomes urgent on its way to the actor starts an urgent load`() throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let scene = Scene()
        let caller = Task(executorPreference: scene.stage, priority: .background) { [service = scene.service] in
            try await service.retrieveToken()
        }
        scene.stage.runOnce()
        caller.escalatePriority(to: .high)
        scene.stage.run()
        #expect(try scene.load().priority == .high)
    }

    @Test func `a load whose last caller leaves just before it starts keeps that caller's urgency`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), eavesdropper = Eavesdropper(scene.stage)
        let events = scene.service.events()
        let reader = Task(executorPreference: eavesdropper) { for await _ in events {} }
        store.hold()
        let first = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        // The load's start is announced first. Thread B gets the event and cancels the caller while the actor is about to start
        // the load.
        eavesdropper.listen { first.cancel() }
        scene.release(store)
        eavesdropper.listen {}
        #expect(first.isDone)
        _ = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        #expect(try scene.load().priority == .high, "the second caller joined without coming in")
        reader.cancel()
        scene.stage.run()
    }

    /// Notes its task's priority when called, and again when it may answer.
    private final class NotingLoader: TokenLoader {
        let priorities = Log<TaskPriority>()
        private let gate = SingleResult<Void>()

        func answer() { gate.complete(with: .success(())) }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            priorities.append(Task.currentPriority)
            try await gate.value()
            priorities.append(Task.currentPriority)
            return .hour("a")
        }
    }

    @Test(arguments: [false, true])
    func `15: a caller that becomes more urgent while it waits raises its load's urgency`(joins: Bool) throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let stage = Stage(), loader = NotingLoader()
        let service = TokenService(environment: .driven(by: stage, clock: ManualClock()), loader: loader)
        func call() -> Task<AccessToken, any Error> {
            let caller = Task(executorPreference: stage, priority: .low) { try await service.retrieveToken() }
            stage.run()
            return caller
        }
        var caller = call()
        if joins { caller = call() }
        caller.escalatePriority(to: .high)
        stage.run()
        loader.answer()
        stage.run()
        #expect(loader.priorities.entries == [.low, .high])
    }

    @Test(arguments: 0..<4)
    func `15: a caller that becomes urgent at any step before it waits raises its load's urgency`(rounds: Int) throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let stage = Stage(), loader = NotingLoader()
        let service = TokenService(environment: .driven(by: stage, clock: ManualClock()), loader: loader)
        let caller = Task(executorPreference: stage, priority: .low) { try await service.retrieveToken() }
        for _ in 0..<rounds { stage.runOnce() }
        caller.escalatePriority(to: .high)
        stage.run()
        loader.answer()
        stage.run()
        #expect(loader.priorities.entries.last == .high)
    }

    @Test(arguments: 0..<4)
    func `15: a sign-in whose caller becomes urgent, at any step, makes the store as urgent`(rounds: Int) throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let store = NotingStore(), scene = Scene(store: store)
        let caller = Task(executorPreference: scene.stage, priority: .low) { [service = scene.service] in
            await service.replace(with: .hour("a"))
        }
        for _ in 0..<rounds { scene.stage.runOnce() }
        caller.escalatePriority(to: .high)
        scene.stage.run()
        store.answer()
        scene.stage.run()
        #expect(store.priorities.entries.suffix(2) == [.high, .high])
    }

    @Test func `15: the store's first read is as urgent as a caller becomes, unless that caller has left`() throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        for leaves in [false, true] {
            let store = NotingStore(), scene = Scene(store: store)
            func call() -> Task<AccessToken, any Error> {
                let caller = Task(executorPreference: scene.stage, priority: .low) { [service = scene.service] in
                    try await service.retrieveToken()
                }
                scene.stage.run()
                return caller
            }
            let staying = call(), caller = call()
            if leaves {
                caller.cancel()
                scene.stage.run()
            }
            caller.escalatePriority(to: .high)
            scene.stage.run()
            store.answer()
            scene.stage.run()
            #expect(store.priorities.entries == [.low, leaves ? .low : .high])
            #expect(try scene.load().priority == (leaves ? .low : .high))
            staying.cancel()
        }
    }

    /// Notes its task's priority when called, and again when it may answer.
    private final class NotingStore: TokenStore {
        let priorities = Log<TaskPriority>()
        private let gate = SingleResult<Void>()

        func answer() { gate.complete(with: .success(())) }

        private func note() async throws {
            priorities.append(Task.currentPriority)
            try await gate.value()
            priorities.append(Task.currentPriority)
        }

        @concurrent func load() async throws -> StoredToken? {
            try await note()
            return nil
        }
        @concurrent func save(_ token: StoredToken) async throws { priorities.append(Task.currentPriority) }
        @concurrent func remove() async throws { priorities.append(Task.currentPriority) }
    }

    @Test(arguments: [true, false])
    func `15: the store works as urgently as the load, also for a caller who joins during the restore`(joins: Bool) throws {
        let store = NotingStore(), scene = Scene(store: store)
        func call(_ priority: TaskPriority) {
            _ = scene.stage.start(priority: priority) { [service = scene.service] in try await service.retrieveToken() }
        }
        if joins { call(.low) }
        call(.high)
        store.answer()
        scene.stage.run()
        #expect(store.priorities.entries == [joins ? .low : .high, .high])
        let load = try scene.load()
        #expect(load.priority == .high)
        scene.succeed(load, with: .hour("a"))
        #expect(store.priorities.entries.last == .high)
    }
}
