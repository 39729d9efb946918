import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantees 12, 15, 16, 17: clock, urgency, context, self-deadlock")
struct IsolationTests {
    @TaskLocal static var caller = "nobody"

    // Museum 23: the clock moved backwards, an expired token looks valid (the wall-clock peers).
    @Test(arguments: [-1e9, 1e9])
    func `12: moving the wall clock neither revives nor kills a token`(jump: Double) throws {
        let wall = Lock(Date(timeIntervalSince1970: 1_000_000_000))
        let stage = Stage()
        let clock = ManualClock()
        let service = TokenService(environment: .driven(by: stage, clock: clock, wallClock: { wall.withLock { $0 } })) { _ in
            .hour("a")
        }
        _ = stage.start { try await service.retrieveToken() }
        wall.withLock { $0 += jump }
        #expect(service.cachedToken?.value == "a")
        clock.advance(by: .seconds(3540))
        wall.withLock { $0 -= 2 * jump }
        #expect(service.cachedToken == nil)
    }

    @Test func `15: a higher-priority caller raises the load's priority`() throws {
        let scene = Scene()
        _ = scene.stage.start(priority: .low) { [service = scene.service] in try await service.retrieveToken() }
        let load = try scene.load()
        #expect(load.priority == .low)
        _ = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        #expect(load.priority == .high)
        _ = scene.stage.start(priority: .low) { [service = scene.service] in try await service.retrieveToken() }
        #expect(load.priority == .high)
    }

    @Test func `16: no caller's task-locals or cancellation reach the load`() throws {
        let stage = Stage()
        let seen = Log<String>()
        let service = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in
            seen.append("\(Self.caller) \(Task.isCancelled)")
            return .hour("a")
        }
        _ = stage.start {
            try await Self.$caller.withValue("alice") {
                try await service.retrieveToken()
            }
        }
        #expect(seen.entries == ["nobody false"])
    }

    // Museum 20: the loader's own request asks the service for a token: deadlock (vellum PR#22311; GTMAppAuth).
    @Test(arguments: ["structured", "task"])
    func `17: a loader that asks its own service gets a clear error at once`(kind: String) throws {
        let stage = Stage()
        let box = Lock<TokenService?>(nil)
        let service = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in
            guard let service = box.withLock({ $0 }) else { return .hour("none") }
            if kind == "structured" { return try await service.retrieveToken() }
            return try await Task(executorPreference: stage) { try await service.retrieveToken() }.value
        }
        box.withLock { $0 = service }
        let caller = stage.start { try await service.retrieveToken() }
        #expect(caller.code == .loadFailed)
        let cause = (caller.error as? TokenServiceError)?.underlying as? TokenServiceError
        #expect(cause?.code == .loaderWaitsForItself)
        box.withLock { $0 = nil }
    }

    @Test func `17: a task that outlives the load that started it is an ordinary caller`() throws {
        let stage = Stage(), clock = ManualClock()
        let box = Lock<TokenService?>(nil), tokens = Log<String>()
        let service = TokenService(environment: .driven(by: stage, clock: clock)) { _ in
            let service = box.withLock { $0 }
            Task(executorPreference: stage) {
                try await clock.sleep(for: .seconds(5_000))
                tokens.append(try await service?.retrieveToken().value ?? "none")
            }
            return .hour("a")
        }
        box.withLock { $0 = service }
        _ = stage.start { try await service.retrieveToken() }
        clock.advance(by: .seconds(5_000))
        stage.run()
        #expect(tokens.entries == ["a"])
        box.withLock { $0 = nil }
    }

    @Test func `15: a load isn't raised to the priority of an earlier load's callers`() throws {
        let scene = Scene()
        _ = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        scene.invalidate(try scene.deliver(.hour("a")))
        _ = scene.stage.start(priority: .low) { [service = scene.service] in try await service.retrieveToken() }
        #expect(try scene.load().priority == .low)
    }

    @Test func `15: a load that starts for callers already waiting is as urgent as they are`() throws {
        let scene = Scene()
        _ = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        _ = try scene.load()
        _ = scene.stage.start(priority: .background) { [service = scene.service] in
            await service.replace(with: AccessToken("expired", lifetime: .zero))
        }
        #expect(try scene.load().priority == .high)
    }

    @Test func `17: a loader may ask another service`() {
        let stage = Stage()
        let other = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in .hour("the other's") }
        let service = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in try await other.retrieveToken() }
        let caller = stage.start { try await service.retrieveToken() }
        #expect(caller.value?.value == "the other's")
    }

    @Test func `17: two services whose loaders ask each other get an error, too`() throws {
        let stage = Stage()
        let other = Lock<TokenService?>(nil)
        let first = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in
            guard let service = other.withLock({ $0 }) else { return .hour("none") }
            return try await service.retrieveToken()
        }
        let second = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in try await first.retrieveToken() }
        other.withLock { $0 = second }
        let caller = stage.start { try await first.retrieveToken() }
        #expect(caller.code == .loadFailed)
        other.withLock { $0 = nil }
    }
}
