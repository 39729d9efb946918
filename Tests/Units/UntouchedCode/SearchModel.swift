/// A screen's search, with a debounce; an earlier search is cancelled.
@MainActor package final class SearchModel {
    package private(set) var results = ""
    private var search: Task<Void, Never>?
    private let checksAgain: Bool

    /// - Parameter checksAgain: Whether a search checks if it was cancelled when its answer arrives. Otherwise an old answer may
    ///   replace a new one.
    package init(checksAgain: Bool) {
        self.checksAgain = checksAgain
    }

    package func type(_ text: String) {
        search?.cancel()
        search = Task {
            do { try await Task.sleep(for: .milliseconds(300)) } catch { return }
            let found = await Self.find(text)
            if checksAgain, Task.isCancelled { return }
            results = found
        }
    }

    /// Returns the results; there are more for shorter texts.
    ///
    /// The server doesn't notice that its client has cancelled.
    private nonisolated static func find(_ text: String) async -> String {
        await Task.detached { try? await Task.sleep(for: .milliseconds(2_000 / max(text.count, 1))) }.value
        return "results for \(text)"
    }
}
