import AccessTokens
import Metrics

struct LoadTimes {
    private var begun: [Int: ContinuousClock.Instant] = [:]
    var isLoading: Bool { !begun.isEmpty }

    /// How long the load took that this event ends; `nil` if it ends
    /// none.
    mutating func duration(
        of event: TokenEvent, at now: ContinuousClock.Instant = .now
    ) -> Duration? {
        switch event.name {
        case .reset, .replaced:
            begun = [:]  // the loads before it end without an event
            return nil
        case .loadStarted, .refreshStarted:
            guard let load = event.load else { return nil }
            // A slow reader loses events, and with them the ends of
            // loads.
            begun = begun.filter { $0.key > load - 8 }
            begun[load] = now
            return nil
        case .loadSucceeded, .loadFailed, .refreshFailed:
            return event.load.flatMap { begun.removeValue(forKey: $0) }?
                .duration(to: now)
        default:  // a load that got no token from the server may end, too
            if let load = event.load { begun[load] = nil }
            return nil
        }
    }
}

func record(
    _ event: TokenEvent, lasting duration: Duration?,
    _ attributes: [(String, String)] = []
) {
    let name = [("access_token.event.name", "\(event.name)")]
    Counter(label: "access_token.events", dimensions: name + attributes)
        .increment()
    guard let duration else { return }
    let failure = event.error.map { [("error.type", "\($0.code)")] } ?? []
    Recorder(
        label: "access_token.load.duration",
        dimensions: failure + attributes
    ).record(duration / .seconds(1))
    Recorder(label: "access_token.load.callers", dimensions: attributes)
        .record(event.callers)
}

func measure(_ events: AsyncStream<TokenEvent>) async {
    var times = LoadTimes()
    for await event in events {
        record(event, lasting: times.duration(of: event))
    }
}
