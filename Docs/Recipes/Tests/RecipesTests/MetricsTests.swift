import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import CoreMetrics
import MetricsTestKit
import Testing

@testable import ToSwiftMetrics

@Suite(.serialized)
struct `Events as metrics` {
    /// The process's own; only this suite records what begins with `access_token`.
    static let metrics = {
        let metrics = TestMetrics()
        MetricsSystem.bootstrap(metrics)
        return metrics
    }()

    /// The events of a service that fails once, loads, signs out and is released.
    func story() async throws -> AsyncStream<TokenEvent> {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        server.failNext()
        let tokens = TokenService(loader: server.loader)
        let events = tokens.events()
        _ = try? await tokens.retrieveToken()
        _ = try await tokens.retrieveToken()
        _ = await tokens.reset()
        return events
    }

    func count(_ attributes: [(String, String)]) throws -> Int64 {
        try Self.metrics.expectCounter("access_token.events", attributes).totalValue
    }

    @Test func `each event is counted, and each load is recorded once, in seconds, by its error`() async throws {
        Self.metrics.reset()
        await measure(try await story())
        for (name, times) in [("loadStarted", 2), ("loadFailed", 1), ("loadSucceeded", 1), ("reset", 1)] as [(String, Int64)] {
            #expect(try count([("access_token.event.name", name)]) == times)
        }
        let (good, bad) = (
            try Self.metrics.expectRecorder("access_token.load.duration"),
            try Self.metrics.expectRecorder("access_token.load.duration", [("error.type", "loadFailed")])
        )
        #expect(good.values.count == 1 && bad.values.count == 1)
        #expect(good.values.allSatisfy { (0..<60).contains($0) })
        #expect(try Self.metrics.expectRecorder("access_token.load.callers").values == [1, 1])
    }

    @Test func `a load is measured from its start to its end`() async throws {
        var times = LoadTimes()
        var now = ContinuousClock.now
        var durations: [Duration] = []
        for await event in try await story() {
            if let duration = times.duration(of: event, at: now) { durations.append(duration) }
            now += .seconds(durations.isEmpty ? 2 : 3)
        }
        #expect(durations == [.seconds(2), .seconds(3)])
    }

    @Test func `the events and loads of keys are recorded by class, and their services are gauges`() async throws {
        Self.metrics.reset()
        let people = [("access_token.key.class", "people")]
        let counts = try await {
            let services = TokenServices<String> { key, _ in
                guard key != "nobody" else { throw CancellationError() }
                return AccessToken(key)
            }
            let events = services.events()
            _ = try await services["anna"].retrieveToken()
            _ = try await services["ben"].retrieveToken()
            _ = try? await services["nobody"].retrieveToken()
            let counts = services.counts
            return (counts, events)
        }()
        await measure(counts.1) { $0 == "nobody" ? "others" : "people" }
        #expect(try count([("access_token.event.name", "loadSucceeded")] + people) == 2)
        #expect(try Self.metrics.expectRecorder("access_token.load.duration", people).values.count == 2)
        #expect(try Self.metrics.expectRecorder("access_token.load.callers", people).values == [1, 1])
        let failed = [("error.type", "loadFailed"), ("access_token.key.class", "others")]
        #expect(try Self.metrics.expectRecorder("access_token.load.duration", failed).values.count == 1)
        record(counts.0)
        let gauges = try ["busy", "idle", "released"].map { try Self.metrics.expectRecorder("access_token.services.\($0)") }
        #expect(gauges.compactMap(\.lastValue).reduce(0, +) == 3)
    }

    @Test func `a load that a sign-out cuts off isn't kept`() async throws {
        let loader = ScriptedLoader()
        let tokens = TokenService(loader: loader)
        let events = tokens.events()
        var iterator = events.makeAsyncIterator()
        let caller = Task { try await tokens.retrieveToken() }
        let call = try await loader.nextCall()
        var times = LoadTimes()
        _ = times.duration(of: try #require(await iterator.next()))
        #expect(times.isLoading)
        _ = await tokens.reset()
        _ = times.duration(of: try #require(await iterator.next()))
        #expect(!times.isLoading)
        call.succeed(with: AccessToken("late"))
        _ = try? await caller.value
    }
}
