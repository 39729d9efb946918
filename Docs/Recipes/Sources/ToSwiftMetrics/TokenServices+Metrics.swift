import AccessTokens
import AccessTokensKeys
import Metrics

/// Records the events of all keys, and the durations and callers of their
/// loads, with the class of the key: one of few.
func measure<Key>(
    _ events: AsyncStream<KeyEvent<Key>>,
    class keyClass: @Sendable (Key) -> String
) async {
    var times: [Key: LoadTimes] = [:]
    for await event in events {
        var own = times.removeValue(forKey: event.key) ?? LoadTimes()
        record(
            event.event, lasting: own.duration(of: event.event),
            [("access_token.key.class", keyClass(event.key))])
        // A slow reader loses events, and with them the ends of loads.
        if times.count >= 10_000 { times = [:] }
        if own.isLoading { times[event.key] = own }
    }
}

/// Call it every few seconds.
func record(_ counts: ServiceCounts) {
    Gauge(label: "access_token.services.busy").record(counts.busy)
    Gauge(label: "access_token.services.idle").record(counts.idle)
    Gauge(label: "access_token.services.released").record(counts.released)
}
