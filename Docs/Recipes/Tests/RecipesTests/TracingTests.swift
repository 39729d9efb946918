import AccessTokens
import AccessTokensTesting
import InMemoryTracing
import Testing
import Tracing

@testable import WithTracing

struct `Loads in a trace` {
    /// The process's own.
    static let tracer = {
        let tracer = InMemoryTracer()
        InstrumentationSystem.bootstrap(tracer)
        return tracer
    }()

    @Test func `each load has a span of its own, without a parent, and shows no secret`() async throws {
        _ = Self.tracer
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        server.failNext(with: ScriptedFailure(.signIn))
        let loader = TracedLoader(base: server.loader)
        #expect(loader.isRepeatable == server.loader.isRepeatable)
        let tokens = TokenService(loader: loader)
        await withSpan("a caller") { _ in
            _ = try? await tokens.retrieveToken()
            await tokens.replace(with: server.signIn())
        }
        let token = try #require(tokens.cachedToken)
        await tokens.invalidate(token)
        let next = try await withSpan("another caller") { _ in try await tokens.retrieveToken() }
        let spans = Self.tracer.finishedSpans.filter { $0.operationName == "access_token.load" }
        #expect(spans.count == 2 && spans.allSatisfy { $0.parentSpanID == nil && $0.kind == .client })
        #expect(spans.map { $0.status?.code == .error } == [true, false])
        #expect(spans.first?.attributes["error.type"]?.toSpanAttribute() == "invalid_grant")
        for secret in [token.value, next.value, token.refreshToken, next.refreshToken].compactMap(\.self) {
            #expect(!"\(spans)".contains(secret))
        }
    }
}
