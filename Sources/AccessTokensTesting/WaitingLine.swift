import TokenServiceConcurrency

/// Tasks that wait to be resumed, in the order of their arrival; a value inside a lock.
///
/// Each task leaves once: the code that takes a waiter out of the line, under the lock, resumes it after unlocking.
struct WaitingLine<Tag: Sendable, Success: Sendable>: Sendable {
    struct Waiter: Sendable {
        let id: Int
        let tag: Tag
        let answer: SingleResult<Success>
    }

    private var waiters: [Int: Waiter] = [:]
    private var lastID = 0

    var count: Int { waiters.count }

    /// Takes out all waiters whose tag matches, first come, first served.
    mutating func take(where isMeant: (Tag) -> Bool) -> [Waiter] {
        let taken = waiters.values.filter { isMeant($0.tag) }.sorted { $0.id < $1.id }
        for waiter in taken { waiters[waiter.id] = nil }
        return taken
    }

    /// Takes out the first waiter.
    mutating func takeFirst() -> Waiter? {
        waiters.keys.min().flatMap { waiters.removeValue(forKey: $0) }
    }

    fileprivate mutating func reserve() -> Int {
        lastID += 1
        return lastID
    }

    fileprivate mutating func enter(_ waiter: Waiter) { waiters[waiter.id] = waiter }

    fileprivate mutating func leave(_ id: Int) -> Waiter? { waiters.removeValue(forKey: id) }
}

/// The result of a task's arrival in a line.
enum Entry<Success: Sendable>: Sendable {
    /// The task doesn't wait, since there already is a result.
    case pass(Success)
    /// The task waits; tasks that were waiting for it to wait are resumed.
    case wait(resuming: [SingleResult<Void>] = [])
}

extension Lock {
    /// Waits in a line until the task is taken out, unless `arrive` lets it pass.
    ///
    /// `arrive` runs under the lock, in the same critical section in which the task enters the line. A cancelled task leaves at
    /// once, with `CancellationError`.
    ///
    /// Cancellation and arrival race. If the cancellation comes first, the flag was set before `onCancel` found no waiter in the
    /// line; the arrival, later under the same lock, sees the flag and doesn't enter. If the arrival comes first, `onCancel`
    /// takes the waiter out.
    func wait<Tag: Sendable, Success: Sendable>(
        in line: any WritableKeyPath<Value, WaitingLine<Tag, Success>> & Sendable, as tag: Tag,
        arrive: (inout Value) -> Entry<Success>
    ) async throws -> Success {
        let id = withLock { $0[keyPath: line].reserve() }, answer = SingleResult<Success>()
        return try await withTaskCancellationHandler {
            let entry: Entry<Success>? = withLock { state in
                if Task.isCancelled { return nil }
                let entry = arrive(&state)
                if case .wait = entry { state[keyPath: line].enter(.init(id: id, tag: tag, answer: answer)) }
                return entry
            }
            switch entry {
            case nil: throw CancellationError()
            case .pass(let value): return value
            case .wait(let others): for other in others { other.complete(with: .success(())) }
            }
            return try await answer.value()
        } onCancel: {
            let waiter = withLock { $0[keyPath: line].leave(id) }
            waiter?.answer.complete(with: .failure(CancellationError()))
        }
    }
}
