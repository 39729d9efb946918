/// A semaphore for tasks: lets one through at a time; a task that is cancelled while it waits leaves the line.
package actor TaskSemaphore {
    private var isFree = true
    private var waiting: [(number: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    private var last = 0
    private let passesOn: Bool

    /// - Parameter passesOn: Whether a task that is cancelled when it gets its turn passes the turn on. Otherwise it throws and
    ///   keeps the turn, and no task can enter anymore.
    package init(passesOn: Bool) {
        self.passesOn = passesOn
    }

    /// - Throws: `CancellationError` if the task is cancelled while it waits.
    package func wait() async throws {
        if isFree {
            isFree = false
            return
        }
        last += 1
        let number = last
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiting.append((number, $0)) }
        } onCancel: {
            Task { await remove(number) }
        }
        guard Task.isCancelled else { return }
        if passesOn { signal() }
        throw CancellationError()
    }

    package func signal() {
        if waiting.isEmpty { isFree = true } else { waiting.removeFirst().continuation.resume() }
    }

    private func remove(_ number: Int) {
        guard let place = waiting.firstIndex(where: { $0.number == number }) else { return }
        waiting.remove(at: place).continuation.resume(throwing: CancellationError())
    }
}
