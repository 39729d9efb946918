import AllocationCounter

/// The allocations of the whole process while something runs.
struct Allocations: Sendable {
    let count: Int
    let bytes: Int

    /// `nil` where allocations cannot be counted.
    static func counted(during body: () async throws -> Void) async rethrows -> Allocations? {
        guard allocation_counter_works() else { return nil }
        let before = allocation_counter_read()
        allocation_counter_set_counting(true)
        defer { allocation_counter_set_counting(false) }
        try await body()
        let after = allocation_counter_read()
        return Allocations(
            count: Int(after.allocations - before.allocations), bytes: Int(after.live_bytes - before.live_bytes))
    }
}
