public import AccessTokens
import TokenServiceConcurrency

/// Something that happened in the service of one key, for logs and metrics.
///
/// Only ``key`` shows the key: neither a description nor a dump does, since it may be a person's name.
public struct KeyEvent<Key: Hashable & Sendable>: Sendable {
    /// The key in whose service it happened.
    public let key: Key
    /// The service's event.
    ///
    /// The numbers of loads and of fences start again when the key's service has been released and is created again.
    public let event: TokenEvent

    /// Returns one line for a log that begins with a label of the key, such as `key=tenant_7 loadStarted generation=0 …`.
    ///
    /// - Parameter label: A label for the key, as far as the log may show it. It can't begin another line or another field.
    public func description(label: String) -> String {
        "key=\(LogText.field(label)) \(event)"
    }
}

extension TokenServices {
    /// Returns a stream of the events in the services of all keys from now on.
    ///
    /// One stream serves any number of keys, including services that are created later, or created again. The events of one key
    /// arrive in their order; those of different keys in any order. Each call creates its own stream with a bounded buffer: a
    /// slow reader loses the oldest events and doesn't delay other readers. Without a stream, no events are created. Streams end
    /// when this object is released.
    ///
    /// If keys share a refresh token, there is one more event: a failure of the store that keeps it (`storeFailed`), under the
    /// key that `grant` names, with the generation of that key's own service.
    ///
    /// - Parameter limit: How many events are kept for a slow reader, at least 1.
    public func events(bufferingNewest limit: Int = 4_096) -> AsyncStream<KeyEvent<Key>> {
        registry.hub.subscribe(bufferingNewest: limit)
    }
}

extension KeyEvent: Redacted {
    /// The event's own line, without the key.
    package var text: String { event.description }
}

/// How many services there are, for a metric of the program's memory.
public struct ServiceCounts: Sendable, Hashable {
    /// The number of services that are kept because something would be lost with them; it has no limit.
    public let busy: Int
    /// The number of services that are kept for the next caller.
    ///
    /// At most `keepingIdle`, except while a ``TokenServices/reset(where:)`` runs.
    public let idle: Int
    /// The number of services that are released, and still held elsewhere in the program.
    public let released: Int
}

extension TokenServices {
    /// How many services there are at this moment.
    public var counts: ServiceCounts {
        let now = registry.clock.now()
        // A service that becomes idle here and is one too many is released before the count; if nothing else holds it, it is gone.
        _ = registry.withTable { $0.shelf.elapse(to: now) }
        return registry.withTable {
            ServiceCounts(busy: $0.shelf.busyCount, idle: $0.shelf.idleCount, released: $0.shelf.releasedCount)
        }
    }
}

/// The description shows the number of services but no keys, which may be names of people.
extension TokenServices: Redacted {
    package var text: String { "TokenServices" }
}
