import DataLoading
import Foundation

/// Loads movies for one screen; releasing it cancels its requests, because its data loader is released, too.
final class MovieLoader: Sendable {
    typealias Handler = @Sendable (Result<[Movie], any Error>) -> Void

    private let loader: DataLoader
    private let api: URL

    init(loader: DataLoader, api: URL) {
        self.loader = loader
        self.api = api
    }

    /// Loads the movies of a genre; the handler is called once, or never if this loader is released first.
    func loadMovies(of genre: String, then handler: @escaping Handler) {
        loader.perform(request(genre)) { result in
            handler(Result { try result.get().decoded() })
        }
    }

    /// Loads the movies of a genre.
    func loadMovies(of genre: String) async throws -> [Movie] {
        try await loader.perform(request(genre), as: [Movie].self)
    }

    private func request(_ genre: String) -> Request {
        Request(url: api.appending(path: "movies"), query: [URLQueryItem(name: "genre", value: genre)])
    }
}
