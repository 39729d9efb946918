/// What tells two executions apart: who ran at each step, and what was chosen.
struct Fingerprint: Sendable, Equatable {
    private var hash: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func mix(_ value: Int) {
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
    }
}
