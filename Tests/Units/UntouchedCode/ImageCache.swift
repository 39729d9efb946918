/// Downloads each image once, even for callers that ask while the download runs.
package actor ImageCache {
    private var downloads: [String: Task<String, any Error>] = [:]
    private let download: @Sendable (_ path: String) async throws -> String
    private let compares: Bool

    /// - Parameters:
    ///   - compares: Whether a download that fails removes only itself. Otherwise it also removes its successor.
    ///   - download: Sends the request to the server.
    package init(compares: Bool, download: @escaping @Sendable (_ path: String) async throws -> String) {
        self.compares = compares
        self.download = download
    }

    package func image(_ path: String) async throws -> String {
        if let running = downloads[path] { return try await running.value }
        let running = Task { [download] in try await download(path) }
        downloads[path] = running
        do {
            return try await running.value
        } catch {
            if !compares || downloads[path] == running { downloads[path] = nil }
            throw error
        }
    }

    /// Forgets all images, and cancels the downloads under way.
    package func clear() {
        for running in downloads.values { running.cancel() }
        downloads = [:]
    }
}
