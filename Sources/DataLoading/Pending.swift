import TokenServiceConcurrency

/// The performances of one loader that have not ended.
final class Pending: Sendable {
    private struct Performances {
        var next = 0
        var current: [Int: StatefulRequest] = [:]
    }

    private let performances = Lock(Performances())

    var count: Int { performances.withLock { $0.current.count } }

    /// Adds a performance, and returns the number under which it is to be removed.
    func add(_ performance: StatefulRequest) -> Int {
        performances.withLock { performances in
            performances.next += 1
            performances.current[performances.next] = performance
            return performances.next
        }
    }

    func remove(_ number: Int) {
        // The performance may die with its entry: after the lock, since its destruction runs foreign code.
        _ = performances.withLock { $0.current.removeValue(forKey: number) }
    }

    /// Cancels all that are there, in the order of their beginning.
    func cancelAll() {
        let current = performances.withLock { $0.current }
        for (_, performance) in current.sorted(by: { $0.key < $1.key }) { performance.cancel() }
    }
}
