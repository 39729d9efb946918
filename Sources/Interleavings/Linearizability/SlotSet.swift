/// A set of slots: small numbers that calls hold while they are open.
protocol SlotSet: Hashable {
    /// What storing one set costs, in words.
    static func words(for slots: Int) -> Int

    init(slots: Int)
    func contains(_ slot: Int) -> Bool
    mutating func insert(_ slot: Int)
    mutating func remove(_ slot: Int)
}

/// A set of slots below 64: one word.
struct NarrowSlots: SlotSet {
    static let capacity = UInt64.bitWidth
    private var bits: UInt64 = 0

    static func words(for slots: Int) -> Int { 1 }

    init(slots: Int) {}

    func contains(_ slot: Int) -> Bool { bits & (1 << UInt64(slot)) != 0 }
    mutating func insert(_ slot: Int) { bits |= 1 << UInt64(slot) }
    mutating func remove(_ slot: Int) { bits &= ~(1 << UInt64(slot)) }
}

/// A set of any number of slots.
struct WideSlots: SlotSet {
    private var words: [UInt64]

    static func words(for slots: Int) -> Int { (slots + 63) / 64 }

    init(slots: Int) {
        words = Array(repeating: 0, count: Self.words(for: slots))
    }

    func contains(_ slot: Int) -> Bool { words[slot / 64] & (1 << UInt64(slot % 64)) != 0 }
    mutating func insert(_ slot: Int) { words[slot / 64] |= 1 << UInt64(slot % 64) }
    mutating func remove(_ slot: Int) { words[slot / 64] &= ~(1 << UInt64(slot % 64)) }
}
