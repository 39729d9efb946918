import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Synchronization
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

func record(_ event: TokenEvent, lasting duration: Duration?) {
    let name = [("access_token.event.name", "\(event.name)")]
    Counter(label: "access_token.events", dimensions: name).increment()
    guard let duration else { return }
    let failure = event.error.map { [("error.type", "\($0.code)")] } ?? []
    Recorder(label: "access_token.load.duration", dimensions: failure)
        .record(duration / .seconds(1))
    Recorder(label: "access_token.load.callers").record(event.callers)
}

func measure(
    _ events: AsyncStream<TokenEvent>,
    _ record: (TokenEvent, _ lasting: Duration?) -> Void
) async {
    var times = LoadTimes()
    for await event in events {
        record(event, times.duration(of: event))
    }
}

func record(_ event: KeyEvent<TenantScope>) {
    let attributes = [
        ("access_token.event.name", "\(event.event.name)"),
        ("access_token.scope", event.key.scope),
    ]
    Counter(label: "access_token.events", dimensions: attributes).increment()
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

    @Test func `counts each event and records each load once, in seconds, by its error`() async throws {
        let story = try await story()
        await measure(story, record)
        // A duration is whatever it was.
        let all = Instruments.lines.withLock(\.self).map { line in
            line.hasPrefix("access_token.load.duration") ? line.split(separator: " ").dropLast().joined(separator: " ") : line
        }
        #expect(
            all == [
                "access_token.events access_token.event.name=loadStarted +1",
                "access_token.events access_token.event.name=loadFailed +1",
                "access_token.load.duration error.type=loadFailed", "access_token.load.callers 1",
                "access_token.events access_token.event.name=loadStarted +1",
                "access_token.events access_token.event.name=loadSucceeded +1",
                "access_token.load.duration", "access_token.load.callers 1",
                "access_token.events access_token.event.name=reset +1",
            ])
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

/// Where the stand-ins for the instruments of swift-metrics write.
private enum Instruments {
    /// What one test writes: only that one measures with them.
    static let lines = Mutex<[String]>([])

    static func write(_ label: String, _ dimensions: [(String, String)], _ value: String) {
        let line = ([label] + dimensions.map { "\($0.0)=\($0.1)" } + [value]).joined(separator: " ")
        lines.withLock { $0.append(line) }
    }
}

private struct Counter {
    let label: String
    var dimensions: [(String, String)] = []

    func increment() { Instruments.write(label, dimensions, "+1") }
}

private struct Recorder {
    let label: String
    var dimensions: [(String, String)] = []

    func record(_ value: some BinaryInteger) { Instruments.write(label, dimensions, "\(value)") }
    func record(_ value: some BinaryFloatingPoint) { Instruments.write(label, dimensions, "\(Double(value))") }
}
