import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Insides
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing

// The two bridges in “Migrating from completion handlers” that look right, run. `GuideTests` compares the page with this file.

private struct Wrapped {
    let service: AccessTokenService

    func token() async throws -> AccessToken {
        try await withCheckedThrowingContinuation { continuation in
            service.retrieveToken { continuation.resume(with: $0) }
        }
    }
}

private struct Bridge {
    let tokens: TokenService
    let executor: (any TaskExecutor)?

    func retrieveToken(then handler: @escaping AccessTokenService.Handler) {
        Task(executorPreference: executor) {
            do {
                handler(.success(try await tokens.retrieveToken()))
            } catch {
                handler(.failure(error))
            }
        }
    }
}

@Suite(.unlinked, .timeLimit(.minutes(10)), .inRealTime) struct `Migrating from completion handlers: bridges` {
    @Test func `a wrapped handler keeps its cancelled caller waiting, while retrieveToken releases it`() async throws {
        let loader = ScriptedLoader()
        let service = AccessTokenService(loader: loader)
        let wrapped = Task { try await Wrapped(service: service).token() }
        let call = try await loader.nextCall()
        let direct = Task { try await service.service.retrieveToken() }
        wrapped.cancel()
        direct.cancel()
        // The load has no answer yet, and one of them waits no longer.
        await #expect(throws: CancellationError.self) { try await direct.value }
        call.succeed(with: AccessToken("late"))
        #expect(try await wrapped.value.value == "late")
    }

    @Test func `a task for each handler loses the order of the calls`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(delays: 2)) { simulation in
                let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)) { _ in
                    AccessToken("a")
                }
                let bridge = Bridge(tokens: tokens, executor: simulation.taskExecutor)
                try await Self.inOrder(simulation) { bridge.retrieveToken(then: $0) }
            }
        }
        #expect(failure?.description.contains("in the order of the calls") == true)
    }

    @Test func `AccessTokenService keeps the order of the calls`() async throws {
        let summary = try await explore(.exhaustive(delays: 2)) { simulation in
            let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)) { _ in
                AccessToken("a")
            }
            let queue = simulation.serialQueue("queue")
            let service = AccessTokenService(service: tokens, on: queue)
            try await Self.inOrder(simulation) { service.retrieveToken(then: $0) }
        }
        #expect(summary.omitsDefaultActorsOnly)
    }

    private static func inOrder(
        _ simulation: Simulation,
        retrieve: @escaping @Sendable (@escaping @Sendable (Result<AccessToken, any Error>) -> Void) -> Void
    ) async throws {
        let log = GuideLog()
        simulation.spawn("screen") {
            retrieve { _ in log.add("first") }
            retrieve { _ in log.add("second") }
        }
        try await simulation.settle()
        try simulation.require(log.lines == ["first", "second"], "in the order of the calls")
    }
}
