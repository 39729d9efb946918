/// Limits in the order of their times: a binary heap, the earliest first.
///
/// An entry whose owner has left stays until its time comes, or until the heap is emptied or purged. Inlinable for the shim,
/// whose hits look here.
@usableFromInline
package struct LimitHeap<Owner: Sendable>: Sendable {
    @usableFromInline var entries: ContiguousArray<(time: Duration, owner: Owner)> = []

    @inlinable package init() {}

    @inlinable package var count: Int { entries.count }
    @inlinable package var earliest: Duration? { entries.first?.time }

    @inlinable package mutating func insert(_ owner: Owner, at time: Duration) {
        entries.append((time, owner))
        rise(from: entries.count - 1)
    }

    @inlinable mutating func rise(from start: Int) {
        var child = start
        while child > 0, entries[child].time < entries[(child - 1) / 2].time {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Takes the earliest entry if its time has come.
    @inlinable package mutating func removeEarliest(until now: Duration) -> Owner? {
        guard let first = entries.first, first.time <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var parent = 0
        while true {
            var earliest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].time < entries[earliest].time {
                earliest = child
            }
            guard earliest != parent else { return first.owner }
            entries.swapAt(earliest, parent)
            parent = earliest
        }
    }

    /// Keeps only the entries of owners that have not left.
    @inlinable package mutating func purge(_ hasLeft: (Owner) -> Bool) {
        // Entries at the end can be removed without checking the others, and usually there are no others.
        while let last = entries.last, hasLeft(last.owner) { entries.removeLast() }
        guard !entries.isEmpty else { return }
        entries.removeAll { hasLeft($0.owner) }
        for index in entries.indices { rise(from: index) }
    }
}
