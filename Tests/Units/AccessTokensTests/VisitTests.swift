import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

/// The effect of a task that prefers a busy executor on the others; tested on the pool, with a stage whose jobs never run by
/// themselves.
@Suite struct VisitTests {
    enum Visit: CaseIterable {
        case miss, invalidate, replace, retryNow, reset
    }

    @Test(.timeLimit(.minutes(10)), arguments: Visit.allCases)
    func `a caller that prefers a busy executor delays no other caller`(visit: Visit) async throws {
        let busy = Stage(), loader = ScriptedLoader(),
            tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader)
        let events = tokens.events()
        let visitor = Task(executorPreference: busy) {
            switch visit {
            case .miss: _ = try? await tokens.retrieveToken()
            case .invalidate: await tokens.invalidate(AccessToken("a"))
            case .replace: await tokens.replace(with: AccessToken("a", lifetime: .zero))
            case .retryNow: await tokens.retryNow()
            case .reset: _ = await tokens.reset()
            }
        }
        // Run one job of the visitor, which enters the actor; after that its executor stays busy.
        busy.runOnce()
        // If its visit waited there, nothing else could enter the actor.
        if [.miss, .replace, .reset].contains(visit) { _ = await events.first { _ in true } }
        let caller = Task { try await tokens.retrieveToken() }
        try await loader.nextCall().succeed(with: AccessToken("b", lifetime: .seconds(3600)))
        #expect(try await caller.value.value == "b")
        busy.run()
        _ = await visitor.value
    }

    @Test(.timeLimit(.minutes(10)))
    func `a loader that asks another service doesn't make that service depend on its executor`() async throws {
        let busy = Stage(), loader = ScriptedLoader()
        let inner = TokenService(environment: .init(clock: ManualClock()), loader: loader)
        let outer = TokenService(environment: .init(clock: ManualClock(), loadExecutor: busy)) { _ in
            try await inner.retrieveToken()
        }
        let first = Task { try await outer.retrieveToken() }
        while busy.pending == 0 { await Task.yield() }
        busy.runOnce()
        let second = Task { try await inner.retrieveToken() }
        try await loader.nextCall().succeed(with: AccessToken("b", lifetime: .seconds(3600)))
        #expect(try await second.value.value == "b")
        let runner = Task { while !Task.isCancelled { busy.run(); await Task.yield() } }
        #expect(try await first.value.value == "b")
        runner.cancel()
    }
}
