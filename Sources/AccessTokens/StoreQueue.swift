/// The operations of the store: the first one runs, the others wait in the order in which the service decided on them.
///
/// A pure value of the state machine. It never holds more than a few operations: what a later one makes pointless is
/// dropped before it begins, so a store that hangs collects nothing.
struct StoreQueue: Sendable {
    /// What an operation does.
    enum Kind: Sendable {
        case load
        case save(AccessToken, start: Duration)
        case remove
    }

    struct Operation: Sendable {
        let id: Int
        let kind: Kind
        /// How many fences there were when the service decided on it.
        let generation: Int
        /// From then on nothing waits for it.
        let deadline: Duration
        /// The flight that goes on when it ends.
        var flight: Int?
        /// The fences whose callers wait for its end.
        var fences: [Int] = []
        /// Whether it first reads what is there: the service doesn't know it, and it is to be revoked.
        var handsOver = false
        /// What has been handed over already.
        var handedOver: [AccessToken] = []
        /// Whether its deadline has passed; it goes on all the same, and those behind it wait.
        var isLate = false
    }

    private(set) var operations: [Operation] = []
    private var count = 0

    /// Whether the operation that runs has exceeded its limit: then nothing else waits for the store either.
    var isLate: Bool { operations.first?.isLate ?? false }

    /// When the next operation exceeds its limit.
    var nextDeadline: Duration? { operations.lazy.filter { !$0.isLate }.map(\.deadline).min() }

    /// Adds an operation at the end; returns those that it makes pointless, which have not begun.
    mutating func add(
        _ kind: Kind, generation: Int, deadline: Duration, flight: Int? = nil, fence: Int? = nil, handsOver: Bool = false,
        handedOver: [AccessToken] = []
    ) -> [Operation] {
        let dropped = dropPending(before: kind)
        count += 1
        var operation = Operation(
            id: count, kind: kind, generation: generation, deadline: deadline, flight: flight,
            handsOver: handsOver || dropped.contains(where: \.handsOver))
        operation.fences = dropped.flatMap(\.fences) + [fence].compactMap { $0 }
        // Of many that follow each other quickly the last ones are enough: what is handed over twice does no harm.
        operation.handedOver = (dropped.flatMap(\.handedOver) + handedOver).suffix(8)
        // Behind one that is late, nothing waits.
        operation.isLate = isLate
        operations.append(operation)
        return dropped
    }

    /// The first operation has ended.
    mutating func removeFirst() -> Operation? {
        operations.isEmpty ? nil : operations.removeFirst()
    }

    /// Marks those whose time is over, and returns them as they were.
    mutating func elapse(to now: Duration) -> [Operation] {
        var late: [Operation] = []
        for index in operations.indices where !operations[index].isLate && operations[index].deadline <= now {
            late.append(operations[index])
            operations[index].isLate = true
            operations[index].fences = []
            // What was to be restored is welcome later; what was to be saved is published without.
            if case .save = late[late.count - 1].kind { operations[index].flight = nil }
        }
        return late
    }

    /// A removal makes everything before it pointless; a save makes other saves and loads so.
    private mutating func dropPending(before kind: Kind) -> [Operation] {
        func isPointless(_ operation: Operation) -> Bool {
            switch (operation.kind, kind) {
            case (_, .load), (.remove, .save): false
            default: true
            }
        }
        let pending = operations.dropFirst()
        let dropped = pending.filter(isPointless)
        operations = operations.prefix(1) + pending.filter { !isPointless($0) }
        return dropped
    }
}
