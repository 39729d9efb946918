/// The operations of the store: the first one runs, the others wait in the order in which the service decided on them.
///
/// A pure value of the state machine. It never holds more than a few operations: a pending one that a later one supersedes is
/// dropped before it begins, so a hanging store accumulates nothing.
struct StoreQueue: Sendable {
    /// The kinds of operations.
    enum Kind: Sendable {
        case load
        case save(AccessToken, start: Duration)
        case remove
    }

    struct Operation: Sendable {
        let id: Int
        let kind: Kind
        /// The number of fences when the service decided on it.
        let generation: Int
        /// When nothing waits for it any longer.
        var deadline: Duration
        /// The flight that continues when it ends.
        var flight: Int?
        /// The fences whose callers wait for its end.
        var fences: [Int] = []
        /// Whether it first reads the stored token, which the service doesn't know and which has to be revoked.
        var handsOver = false
        /// Whether its deadline or an earlier operation's has passed, so that nothing waits for it any longer.
        var isLate = false
    }

    private(set) var operations: [Operation] = []
    private var count = 0

    /// The save or removal that the service decided on last.
    private(set) var lastWrite: (id: Int, kind: Kind)?
    /// Whether an operation that should have handed over the stored token was lost or failed, so that the next one must do it.
    private var owesHandOver = false

    /// The last save or removal, if it failed, so that the store is out of date.
    private(set) var unsaved: Unsaved?
    /// How many times in a row it failed.
    private var failures = 0

    /// A save or a removal to repeat.
    struct Unsaved: Sendable {
        let error: TokenServiceError
        /// When an event or a hit repeats it: 1, 2, 4 … 60 s after the failure.
        ///
        /// `nil`: it counts as lost, and repeating it by itself would pile up operations that hang.
        let nextAttempt: Duration?
    }

    /// Whether the store is up to date and has nothing to do.
    var isSettled: Bool { operations.isEmpty && unsaved == nil }

    /// Whether the operation that runs has exceeded its limit: then nothing else waits for the store either.
    var isLate: Bool { operations.first?.isLate ?? false }

    /// When the running operation exceeds its limit; those behind it were added later, so their limits are later.
    var nextDeadline: Duration? { isLate ? nil : operations.first?.deadline }

    /// Adds an operation at the end; returns the pending ones that it supersedes.
    @discardableResult
    mutating func add(
        _ kind: Kind, generation: Int, deadline: Duration, flight: Int? = nil, fence: Int? = nil, handsOver: Bool = false
    ) -> [Operation] {
        let dropped = dropPending(before: kind)
        count += 1
        var operation = Operation(
            id: count, kind: kind, generation: generation, deadline: deadline, flight: flight,
            handsOver: handsOver || owesHandOver || dropped.contains(where: \.handsOver))
        for other in dropped where !other.fences.isEmpty {
            operation.fences += other.fences
            // Merging must not extend a fence's deadline.
            operation.deadline = min(operation.deadline, other.deadline)
        }
        if let fence { operation.fences.append(fence) }
        // Callers don't wait for operations behind a late one.
        operation.isLate = isLate
        operations.append(operation)
        if operation.isWrite { (lastWrite, owesHandOver) = ((count, kind), false) }
        return dropped
    }

    /// Ends the first operation; `error` is what it threw, and `hasRead` whether it could hand over a token all the same.
    mutating func end(
        _ error: TokenServiceError?, hasRead: Bool = false, isLost: Bool = false, at now: Duration
    ) -> Operation? {
        guard !operations.isEmpty else { return nil }
        let operation = operations.removeFirst()
        if operation.isWrite { note(error, isLost: isLost, at: now) }
        if error != nil, operation.handsOver, !hasRead, operations.isEmpty { owesHandOver = true }
        return operation
    }

    /// Notes how a save or removal has ended; a pending one supersedes it when it ends.
    private mutating func note(_ error: TokenServiceError?, isLost: Bool = false, at now: Duration) {
        failures = error == nil ? 0 : failures + 1
        let pause = min(.seconds(1 << min(max(failures, 1) - 1, 6)), RefreshPolicy.longestPause)
        unsaved = error.map { Unsaved(error: $0, nextAttempt: isLost ? nil : now + pause) }
    }

    /// Treats the running operation as lost, which is a failure.
    mutating func forgetFirst(at now: Duration) -> Operation? {
        guard let lost = end(.storeIsLate, isLost: true, at: now) else { return nil }
        if lost.handsOver, !operations.isEmpty { operations[0].handsOver = true }
        return lost
    }

    /// Notes the end of a save or a removal that counted as lost.
    ///
    /// - Returns: The kind of write to repeat, since this operation may have written after it; `nil` if nothing was decided
    ///   later, or if a later write hasn't begun yet.
    mutating func endLost(_ lost: Operation, _ error: TokenServiceError?, at now: Duration) -> Kind? {
        guard let lastWrite, lastWrite.id != lost.id else {
            note(error, at: now)
            return nil
        }
        return operations.dropFirst().contains(where: \.isWrite) ? nil : lastWrite.kind
    }

    /// Begins the next operation; one that waited behind a late one gets a new limit, since the store is responding.
    mutating func begin(at now: Duration) -> Operation? {
        guard !operations.isEmpty else { return nil }
        if operations[0].isLate {
            operations[0].isLate = false
            operations[0].deadline = now + RefreshPolicy.storeTimeout
        }
        return operations[0]
    }

    /// Ends the waits for all operations when the running one exceeds its limit; returns the operations as they were.
    mutating func elapse(to now: Duration) -> [Operation] {
        guard let deadline = nextDeadline, deadline <= now else { return [] }
        let late = operations
        for index in operations.indices {
            operations[index].isLate = true
            operations[index].fences = []
            // A late restored token is still used; a token that was to be saved is published unsaved.
            if case .save = operations[index].kind { operations[index].flight = nil }
        }
        return late
    }

    /// A removal supersedes everything before it; a save supersedes other saves and loads.
    private mutating func dropPending(before kind: Kind) -> [Operation] {
        func isPointless(_ operation: Operation) -> Bool {
            switch (operation.kind, kind) {
            case (_, .load), (.remove, .save): false
            default: true
            }
        }
        let running = operations.first?.id
        let dropped = operations.filter { $0.id != running && isPointless($0) }
        operations.removeAll { $0.id != running && isPointless($0) }
        return dropped
    }
}

extension StoreQueue.Operation {
    /// Whether it changes what the store has.
    var isWrite: Bool {
        if case .load = kind { false } else { true }
    }

    /// Why the service gives up what the operation finds in the store.
    var reason: DiscardedGrant.Reason { if case .remove = kind { .signedOut } else { .replaced } }
}
