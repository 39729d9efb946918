import AccessTokens
import AccessTokensTesting
import Testing

// The Swift blocks of `LoggingAndMetrics` about the times of loads, as they stand there, run.

struct LoadTimes {
    private var begun: [Int: ContinuousClock.Instant] = [:]

    /// How long the load took that this event ends; `nil` if it ends none.
    mutating func duration(
        of event: TokenEvent, at now: ContinuousClock.Instant = .now
    ) -> Duration? {
        guard let load = event.load else { return nil }
        switch event.name {
        case .loadStarted, .refreshStarted:
            // A sign-out cuts loads off, and their end is not told.
            begun = begun.filter { $0.key > load - 8 }
            begun[load] = now
            return nil
        case .loadSucceeded, .loadFailed, .refreshFailed:
            return begun.removeValue(forKey: load)?.duration(to: now)
        default:
            return nil
        }
    }
}

func measure(
    _ events: AsyncStream<TokenEvent>,
    _ record: (_ outcome: String, Duration) -> Void
) async {
    var times = LoadTimes()
    for await event in events {
        guard let duration = times.duration(of: event) else { continue }
        record("\(event.name)", duration)
    }
}

@Suite struct `The guide to metrics` {
    /// The events of a service that fails once, loads, signs out and is released.
    private func story() async throws -> AsyncStream<TokenEvent> {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        server.failNext()
        let tokens = TokenService(loader: server.loader)
        let events = tokens.events()
        _ = try? await tokens.retrieveToken()
        _ = try await tokens.retrieveToken()
        _ = await tokens.reset()
        return events
    }

    @Test func `records each load once, by its outcome`() async throws {
        var outcomes: [String] = []
        await measure(try await story()) { outcome, _ in outcomes.append(outcome) }
        #expect(outcomes == ["loadFailed", "loadSucceeded"])
    }

    @Test func `measures from a load's start to its end`() async throws {
        var times = LoadTimes()
        var now = ContinuousClock.now
        var durations: [Duration] = []
        for await event in try await story() {
            if let duration = times.duration(of: event, at: now) { durations.append(duration) }
            now += .seconds(durations.isEmpty ? 2 : 3)
        }
        #expect(durations == [.seconds(2), .seconds(3)])
    }
}
