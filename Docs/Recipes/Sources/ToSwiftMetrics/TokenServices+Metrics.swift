import AccessTokens
import AccessTokensKeys
import Metrics

/// Records an event with the class of its key: one of few.
func record<Key>(_ event: KeyEvent<Key>, of keyClass: String) {
    let attributes = [
        ("access_token.event.name", "\(event.event.name)"),
        ("access_token.key.class", keyClass),
    ]
    Counter(label: "access_token.events", dimensions: attributes).increment()
}

/// Call it every few seconds.
func record(_ counts: ServiceCounts) {
    Gauge(label: "access_token.services.busy").record(counts.busy)
    Gauge(label: "access_token.services.idle").record(counts.idle)
    Gauge(label: "access_token.services.released").record(counts.released)
}
