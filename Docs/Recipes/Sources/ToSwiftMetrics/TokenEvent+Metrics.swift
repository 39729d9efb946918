import AccessTokens
import Metrics

struct LoadTimes {
    private var begun: [Int: ContinuousClock.Instant] = [:]

    /// How long the load took that this event ends; `nil` if it ends none.
    mutating func duration(
        of event: TokenEvent, at now: ContinuousClock.Instant = .now
    ) -> Duration? {
        guard let load = event.load else { return nil }
        switch event.name {
        case .loadStarted, .refreshStarted:
            // A sign-out cuts loads off without an event for their end.
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
    _ record: (TokenEvent, _ lasting: Duration?) -> Void = record
) async {
    var times = LoadTimes()
    for await event in events {
        record(event, times.duration(of: event))
    }
}
