/// Something that is measured, with its baselines.
struct Suite: Sendable {
    let name: String
    let run: @Sendable (Effort) async throws -> [Table]

    static let all: [Suite] = [
        // First: what earlier suites leave to be freed would be counted.
        Suite(name: "memory", run: memory),
        Suite(name: "keys", run: keys),
        Suite(name: "hit", run: hits),
        Suite(name: "callback-hit", run: callbackHits),
        Suite(name: "contended-hit", run: contendedHits),
        Suite(name: "allocations", run: allocations),
        Suite(name: "miss", run: misses),
        Suite(name: "cancelling", run: cancelling),
        Suite(name: "refresh", run: refreshing),
        Suite(name: "storm", run: storm),
        Suite(name: "rotating", run: rotating),
        Suite(name: "explorer", run: exploring),
        Suite(name: "start-up", run: startUp),
    ]
}
