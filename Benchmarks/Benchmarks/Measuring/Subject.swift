/// Something whose cost is measured.
struct Subject: Sendable {
    let name: String
    /// Does it `count` times and returns how long that took, without the preparation.
    let time: @Sendable (_ count: Int) async throws -> Duration

    init(_ name: String, time: @escaping @Sendable (_ count: Int) async throws -> Duration) {
        self.name = name
        self.time = time
    }
}

/// How long something takes.
func timed(_ body: () async throws -> Void) async rethrows -> Duration {
    let start = ContinuousClock.now
    try await body()
    return start.duration(to: .now)
}

/// Keeps a value from being optimised away; of this module, since a foreign generic function would need a larger closure around it.
@inline(never) func use<Value>(_ value: Value) {}
