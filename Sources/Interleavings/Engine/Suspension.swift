/// Somebody who waits for the engine.
///
/// Safe as long as it ends exactly once, by whoever takes it out of the state. Not a checked continuation: those cost an
/// allocation each, and complain where an explored program loses one of its own.
@safe struct Suspension: Sendable {
    /// Why it ends.
    enum Ending: Sendable {
        /// What was waited for is there.
        case due
        /// The execution or the task is over.
        case cancelled
    }

    private let continuation: UnsafeContinuation<Void, any Error>

    /// Suspends the calling task.
    ///
    /// - Parameter register: Puts the suspension where it will be found.
    static func begin(_ register: (Suspension) -> Void) async throws {
        try await unsafe withUnsafeThrowingContinuation { unsafe register(Suspension(continuation: $0)) }
    }

    func end(_ ending: Ending) {
        switch ending {
        case .due: unsafe continuation.resume()
        case .cancelled: unsafe continuation.resume(throwing: CancellationError())
        }
    }
}
