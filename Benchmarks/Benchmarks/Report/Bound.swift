/// A recorded figure, or its upper limit, that a change must not make much worse.
///
/// Bounds are ratios and counts of one run, never times, which belong to the machine. A check allows a quarter more.
struct Bound: Sendable {
    let table: String
    let row: String
    let column: String
    let limit: Double

    /// How often a figure must exceed its bound.
    static let tries = 4

    static let all = [
        // Two atomic operations for the lock, two for the token and a clock reading are the floor's own.
        Bound(table: "hit", row: "floor: lock, copy, clock", column: "ours ÷ it", limit: 1.25),
        Bound(table: "hit", row: "naive actor", column: "ours ÷ it", limit: 0.6),
        Bound(table: "hit", row: "stage 3, pipelined", column: "ours ÷ it", limit: 0.2),
        Bound(table: "contended-hit", row: "8", column: "ours ÷ floor", limit: 1.25),
        Bound(table: "contended-hit", row: "8", column: "ours ÷ naive actor", limit: 0.75),
        Bound(table: "keys-hit", row: "services[key]", column: "allocations", limit: 0),
        // A lock, and a dictionary's lookup.
        Bound(table: "keys-hit", row: "the service itself", column: "ours ÷ it", limit: 4),
        // A service of its own takes 1.7 KiB.
        Bound(table: "keys-size", row: "100000", column: "memory of a key", limit: 2_304),
        Bound(table: "callback-hit", row: "stage 3", column: "ours ÷ it", limit: 0.5),
        Bound(table: "allocations", row: "TokenService", column: "each", limit: 0),
        Bound(table: "allocations", row: "cachedToken", column: "each", limit: 0),
        Bound(table: "miss-group", row: "10000", column: "ours ÷ Task.value", limit: 0.1),
        Bound(table: "miss", row: "1000", column: "ours ÷ bare tasks", limit: 1.75),
        Bound(table: "miss", row: "10000", column: "ours ÷ Task.value", limit: 1.2),
        Bound(table: "memory-callers", row: "TokenService", column: "each", limit: 1_536),
        Bound(table: "memory-frames", row: "256 B", column: "TokenService", limit: 1_536),
        Bound(table: "memory-frames", row: "512 B", column: "TokenService", limit: 2_560),
        Bound(table: "memory-handlers", row: "AccessTokenService", column: "each", limit: 80),
        Bound(table: "cancelling", row: "10000", column: "all ÷ none", limit: 2.5),
        // No call waits for the network while tokens expire.
        Bound(table: "refresh", row: "TokenService", column: "joined", limit: 0),
        Bound(table: "storm", row: "1000", column: "loads in a storm", limit: 1),
        Bound(table: "explorer-memory", row: "after 20000 schedules more", column: "kept", limit: 64),
    ]

    /// Describes the figures in these tables that exceed their bounds; figures that were not measured do not.
    static func violations(in tables: [Table]) -> [String] {
        all.compactMap { bound in
            guard
                let value = tables.first(where: { $0.id == bound.table })?.value(bound.row, bound.column)?.median,
                value > bound.limit * 1.25
            else { return nil }
            return "\(bound.table), \(bound.row), \(bound.column): \(value), recorded as \(bound.limit)"
        }
    }
}
