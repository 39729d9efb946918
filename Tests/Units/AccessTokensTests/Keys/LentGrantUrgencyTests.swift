import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 15 with a refresh token that several keys use")
struct LentGrantUrgencyTests {
    /// Notes its operations' priorities; holds the first operation until ``answer()``, and notes its priority again.
    private final class NotingStore: TokenStore, TokenStores {
        let priorities = Log<TaskPriority>()
        private let gate = SingleResult<Void>()
        private let isHeld: Lock<Bool>

        init(isHeld: Bool) {
            self.isHeld = Lock(isHeld)
        }

        func answer() { gate.complete(with: .success(())) }

        private func note() async throws {
            priorities.append(Task.currentPriority)
            let waits = isHeld.withLock { isHeld in
                defer { isHeld = false }
                return isHeld
            }
            guard waits else { return }
            try await gate.value()
            priorities.append(Task.currentPriority)
        }

        func store(for key: String) -> any TokenStore { self }
        @concurrent func forEachStoredKey(_ body: @escaping @Sendable (String) -> Void) async {}
        @concurrent func load() async throws -> StoredToken? {
            try await note()
            return nil
        }
        @concurrent func save(_ token: StoredToken) async throws { try await note() }
        @concurrent func remove() async throws { try await note() }
    }

    private struct World {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader()
        let store: NotingStore
        let services: TokenServices<String>

        init(isHeld: Bool = false) {
            store = NotingStore(isHeld: isHeld)
            services = TokenServices(
                grant: { _ in "all" }, stores: store, environment: .driven(by: stage, clock: clock),
                loader: { [loader] _ in loader })
        }

        @discardableResult func signIn(_ key: String, _ priority: TaskPriority) -> Task<SessionChange, Never> {
            let caller = Task(executorPreference: stage, priority: priority) { [services] in
                await services[key].replace(with: AccessToken(key, lifetime: .seconds(60), refreshToken: "r-\(key)"))
            }
            stage.run()
            return caller
        }

        func load() throws -> ScriptedLoader.Call {
            guard let load = stage.start({ [loader] in try await loader.nextCall() }).value else { throw Scene.Missing() }
            return load
        }
    }

    @Test func `15: the grant of an urgent sign-in or load is saved with that urgency`() throws {
        let world = World()
        world.signIn("a", .high)
        world.clock.advance(by: .seconds(60))
        _ = world.stage.start(priority: .high) { [services = world.services] in try await services["a"].retrieveToken() }
        let load = world.stage.start { [loader = world.loader] in try await loader.nextCall() }.value
        load?.succeed(with: AccessToken("b", lifetime: .seconds(60), refreshToken: "r2"))
        world.stage.run()
        #expect(load?.previous?.refreshToken == "r-a")
        #expect(world.store.priorities.entries.count > 1 && world.store.priorities.entries.allSatisfy { $0 == .high })
    }

    @Test func `15: an urgent sign-in is not done at the priority of the one before it`() {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let world = World(isHeld: true)
        world.signIn("a", .low)
        let before = world.store.priorities.entries
        world.signIn("b", .high)
        #expect(before == [.low] && world.store.priorities.entries == before, "the second one waits")
        world.store.answer()
        world.stage.run()
        #expect(world.store.priorities.entries.last == .high, "\(world.store.priorities.entries)")
    }

    @Test(arguments: [true, false])
    func `15: a running sign-in is raised to the priority of a more urgent one that waits for it`(joins: Bool) {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let world = World(isHeld: true), caller = world.signIn("a", .low)
        if joins { world.signIn("b", .high) } else { caller.escalatePriority(to: .high) }
        world.stage.run()
        world.store.answer()
        world.stage.run()
        #expect(world.store.priorities.entries.first == .low)
        #expect(world.store.priorities.entries.dropFirst().allSatisfy { $0 == .high }, "\(world.store.priorities.entries)")
    }

    @Test(arguments: [true, false])
    func `15: a load that waits for its turn raises the urgency of those before it`(joins: Bool) throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let world = World()
        world.signIn("a", .low)
        world.clock.advance(by: .seconds(60))
        func call(_ key: String, _ priority: TaskPriority) -> Task<AccessToken, any Error> {
            let caller = Task(executorPreference: world.stage, priority: priority) { [services = world.services] in
                try await services[key].retrieveToken()
            }
            world.stage.run()
            return caller
        }
        _ = call("a", .low)
        let first = try world.load()
        _ = call("b", .low)
        let caller = call("c", .low)
        if joins { _ = call("c", .high) } else { caller.escalatePriority(to: .high) }
        world.stage.run()
        #expect(first.priority == .high)
        first.succeed(with: AccessToken("a", lifetime: .seconds(60), refreshToken: "r2"))
        world.stage.run()
        #expect(try world.load().priority == .high)
    }
}
