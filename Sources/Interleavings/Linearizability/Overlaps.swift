/// The calls that were open at each return.
///
/// Before a call returns, its operation must have taken effect, and so must those of all calls that returned earlier. So the
/// search goes from return to return; at each, the calls that are open then, and only those, may take effect next.
struct Overlaps: Sendable {
    /// The calls that returned, in the order of their returns.
    private(set) var returns: [Int] = []
    /// Each call's slot, which it holds while it is open; two open calls never share one.
    private(set) var slots: [Int]
    /// How many slots there are: the largest number of calls that were open at once.
    private(set) var slotCount = 0

    // Candidates of return `i`: open[starts[i]..<starts[i + 1]], then the first unfinishedCounts[i] of `unfinished`.
    private var open: [Int] = []
    private var starts = [0]
    private var unfinished: [Int] = []
    private var unfinishedCounts: [Int] = []

    init(_ log: CallLog) {
        slots = Array(repeating: 0, count: log.calls.count)
        var free: [Int] = []
        // In the order of their returns, so that the next to return is tried first: a correct object usually served them in that
        // order.
        var current: [Int] = []
        for event in log.events {
            switch event {
            case .begins(let call):
                if let slot = free.popLast() {
                    slots[call] = slot
                } else {
                    slots[call] = slotCount
                    slotCount += 1
                }
                let end = log.calls[call].end
                if end == .max {
                    unfinished.append(call)
                } else {
                    let place = current.firstIndex { log.calls[$0].end > end } ?? current.endIndex
                    current.insert(call, at: place)
                }
            case .ends(let call):
                returns.append(call)
                open += current
                starts.append(open.count)
                unfinishedCounts.append(unfinished.count)
                current.removeFirst()
                free.append(slots[call])
            }
        }
    }

    /// How many calls are open at a return.
    func candidateCount(at position: Int) -> Int {
        starts[position + 1] - starts[position] + unfinishedCounts[position]
    }

    /// Returns one of the calls that are open at a return; those that return come first, in the order of their returns.
    func candidate(_ index: Int, at position: Int) -> Int {
        let finished = starts[position + 1] - starts[position]
        return index < finished ? open[starts[position] + index] : unfinished[index - finished]
    }
}

/// A set of slots, the small numbers that calls hold while they are open.
protocol SlotSet: Hashable {
    /// The size of one set, in words.
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
