import TokenServiceConcurrency

/// A server whose answers the test gives, in any order.
final class ScriptedServer: Sendable {
    private let questions = Lock<[CheckedContinuation<String, Never>]>([])

    @concurrent func fetch(_ path: String) async throws -> String {
        await withCheckedContinuation { question in questions.withLock { $0.append(question) } }
    }

    /// Answers one of the questions, counted from the first that is open.
    func answer(_ index: Int = 0, with text: String) {
        questions.withLock { $0.remove(at: index) }.resume(returning: text)
    }
}
