import TokenServiceConcurrency

/// Waiters in the order of their arrival; joining and leaving cost the same however many there are.
///
/// The first waiter is stored separately, since usually there is only one. The others form a doubly linked list in an array. The
/// slot of a waiter that left is reused, so the queue is never larger than the most waiters it held at once.
struct WaiterQueue<Waiter> {
    /// A waiter's place; the ticket tells it from a later waiter in the same slot.
    ///
    /// Places compare by the order in which they were taken.
    struct ID: Hashable, Comparable, Sendable {
        fileprivate let ticket: Int
        fileprivate let slot: Int32

        static func < (one: ID, other: ID) -> Bool { one.ticket < other.ticket }
    }

    fileprivate struct Slot {
        var ticket: Int
        var waiter: Waiter?
        var previous: Int32
        var next: Int32
    }

    private static var none: Int32 { -1 }
    /// The first waiter of an empty queue, which has no slot, and its ticket; the waiter may be added after its place is taken.
    private var foremost: Waiter?
    private var foremostTicket = 0
    private var slots: ContiguousArray<Slot> = []
    private var first = Self.none
    private var last = Self.none
    private var free = Self.none
    private var tickets = 0

    /// How many wait.
    private(set) var count = 0

    /// The place that was taken last, even if it is free by now.
    var lastID: ID { ID(ticket: tickets, slot: Self.none) }

    /// Takes the place at the end; the waiter may be given later with ``fill(_:with:)``.
    mutating func append(_ waiter: Waiter? = nil) -> ID {
        tickets += 1
        count += 1
        if count == 1 {
            (foremost, foremostTicket) = (waiter, tickets)
            return ID(ticket: tickets, slot: Self.none)
        }
        let slot = Slot(ticket: tickets, waiter: waiter, previous: last, next: Self.none)
        let index: Int32
        if free == Self.none {
            index = Int32(slots.count)
            slots.append(slot)
        } else {
            index = free
            free = self[index].next
            self[index] = slot
        }
        if last == Self.none { first = index } else { self[last].next = index }
        last = index
        return ID(ticket: tickets, slot: index)
    }

    /// Puts a waiter at a place, unless the place has been removed; returns whether it did.
    mutating func fill(_ id: ID, with waiter: Waiter) -> Bool {
        guard holds(id) else { return false }
        if id.slot == Self.none { foremost = waiter } else { self[id.slot].waiter = waiter }
        return true
    }

    /// Removes a waiter; `nil` if it has been removed before.
    mutating func remove(_ id: ID) -> Waiter? {
        guard holds(id) else { return nil }
        count -= 1
        if id.slot == Self.none {
            foremostTicket = 0
            return foremost.take()
        }
        let slot = self[id.slot]
        if slot.previous == Self.none { first = slot.next } else { self[slot.previous].next = slot.next }
        if slot.next == Self.none { last = slot.previous } else { self[slot.next].previous = slot.previous }
        self[id.slot] = Slot(ticket: 0, waiter: nil, previous: Self.none, next: free)
        free = id.slot
        return slot.waiter
    }

    /// Empties the queue and hands over the waiters.
    mutating func takeAll() -> WaiterQueue {
        var all = WaiterQueue()
        // Ticket numbers continue, so that an old waiter's ID never identifies a new waiter.
        all.tickets = tickets
        swap(&self, &all)
        return all
    }

    /// Calls `body` for every waiter in the order of arrival.
    borrowing func forEach(_ body: (Waiter) -> Void) {
        if let foremost { body(foremost) }
        var index = first
        while index != Self.none {
            if let waiter = self[index].waiter { body(waiter) }
            index = self[index].next
        }
    }

    /// Whether the place is still taken.
    func holds(_ id: ID) -> Bool {
        guard id.slot != Self.none else { return id.ticket == foremostTicket }
        return id.slot < slots.count && self[id.slot].ticket == id.ticket
    }

    private subscript(index: Int32) -> Slot {
        get { slots[Int(index)] }
        _modify { yield &slots[Int(index)] }
    }
}

extension WaiterQueue: Sendable where Waiter: Sendable {}
extension WaiterQueue.Slot: Sendable where Waiter: Sendable {}

extension TokenService {
    /// A caller that waits for the current load, or a batch of callbacks.
    enum Waiter: Sendable {
        /// Resumed exactly once, by the function that removes it from its place in the queue. `leave` removes it alone, `open`
        /// with all others. If its place is already gone in `suspend`, it is resumed at once.
        case caller(WaitingTask)
        case callback(@Sendable (Result<AccessToken, any Error>) -> Void)
    }
}

extension TokenService.Waiter {
    /// Wakes the caller, who finds this answer in the lobby; calls the callbacks with it.
    func resume(with result: Result<AccessToken, any Error>) {
        switch self {
        case .caller(let continuation): continuation.resume()
        case .callback(let answer): answer(result)
        }
    }
}

/// Limits in the order of their times: a binary heap, the earliest first.
///
/// An entry whose owner has left stays until its time comes, or until the heap is emptied or purged. Inlinable for the shim,
/// whose hits read it.
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
