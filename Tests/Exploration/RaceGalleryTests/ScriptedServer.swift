import TokenServiceConcurrency

/// A server whose answers the test provides, in any order.
final class ScriptedServer: Sendable {
    private let questions = Lock<[CheckedContinuation<String, Never>]>([])

    @concurrent func fetch(_ path: String) async throws -> String {
        await withCheckedContinuation { question in questions.withLock { $0.append(question) } }
    }

    /// Answers one of the requests, counted from the first unanswered one.
    func answer(_ index: Int = 0, with text: String) {
        questions.withLock { $0.remove(at: index) }.resume(returning: text)
    }
}
