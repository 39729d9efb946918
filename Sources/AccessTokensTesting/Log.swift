import TokenServiceConcurrency

/// A log of events, in order.
package final class Log<Entry: Sendable>: Sendable {
    private let lock = Lock<[Entry]>([])

    package init() {}

    package var entries: [Entry] { lock.withLock { $0 } }
    package func append(_ entry: Entry) { lock.withLock { $0.append(entry) } }
}
