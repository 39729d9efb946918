/// Limits in the order of their times: a binary heap, the earliest first.
///
/// Who left earlier stays until its time comes, or until the heap is emptied.
struct LimitHeap<Owner: Sendable>: Sendable {
    private var entries: ContiguousArray<(time: Duration, owner: Owner)> = []

    var earliest: Duration? { entries.first?.time }

    mutating func insert(_ owner: Owner, at time: Duration) {
        entries.append((time, owner))
        var child = entries.count - 1
        while child > 0, entries[child].time < entries[(child - 1) / 2].time {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Takes the earliest one if its time has come.
    mutating func removeEarliest(until now: Duration) -> Owner? {
        guard let first = entries.first, first.time <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            let children = [2 * parent + 1, 2 * parent + 2].filter { $0 < entries.count }
            guard let child = children.min(by: { entries[$0].time < entries[$1].time }),
                entries[child].time < entries[parent].time
            else { break }
            entries.swapAt(child, parent)
            parent = child
        }
        return first.owner
    }
}
