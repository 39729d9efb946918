/// A line of tasks that do something one after another, in the order of their arrival.
///
/// No lock is held during a task's turn. A task that is cancelled while it waits leaves at once.
package final class TurnLine: Sendable {
    /// The first task in the line has its turn.
    private let line = Lock<[SingleResult<Void>]>([])

    package init() {}

    /// Waits for the task's turn, and performs `body` in it.
    package func turn<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let place = SingleResult<Void>()
        let isFirst = line.withLock { line in
            line.append(place)
            return line.count == 1
        }
        if !isFirst {
            try await withTaskCancellationHandler {
                try await place.value()
            } onCancel: {
                leave(place)
            }
        }
        defer { next() }
        try Task.checkCancellation()
        return try await body()
    }

    /// Removes the place of a waiting task that was cancelled; a task whose turn has come isn't affected.
    private func leave(_ place: SingleResult<Void>) {
        let hasLeft = line.withLock { line in
            guard let index = line.firstIndex(where: { $0 === place }), index > 0 else { return false }
            line.remove(at: index)
            return true
        }
        if hasLeft { place.complete(with: .failure(CancellationError())) }
    }

    private func next() {
        let next = line.withLock { line in
            line.removeFirst()
            return line.first
        }
        next?.complete(with: .success(()))
    }
}
