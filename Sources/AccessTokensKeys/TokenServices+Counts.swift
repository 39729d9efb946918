import AccessTokens
import TokenServiceConcurrency

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
        // A service that becomes idle by this is released before the count, unless it is held elsewhere.
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
