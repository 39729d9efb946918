/// A screen with the movies of one genre: the owner of a loader.
@MainActor
final class MovieScreen {
    let genre: String
    private(set) var movies: [Movie] = []
    private(set) var error: (any Error)?
    private var loader: MovieLoader?
    private let changes = AsyncStream.makeStream(of: Void.self)

    init(genre: String, factory: MovieLoaderFactory) {
        self.genre = genre
        loader = factory.makeLoader()
    }

    /// Begins to load, as a screen does when it appears.
    func open() {
        loader?.loadMovies(of: genre) { [weak self] result in
            // The loader calls on the main queue.
            MainActor.assumeIsolated { self?.show(result) }
        }
    }

    /// Loads again, as when a user pulls to refresh.
    func reload() async {
        guard let loader else { return }
        do { show(.success(try await loader.loadMovies(of: genre))) } catch { show(.failure(error)) }
    }

    /// Releases the loader, as a screen does when it disappears.
    func close() {
        loader = nil
    }

    /// Waits until the screen has something to show.
    func shown() async {
        for await _ in changes.stream { return }
    }

    private func show(_ result: Result<[Movie], any Error>) {
        switch result {
        case .success(let movies): self.movies = movies
        case .failure(let error): self.error = error
        }
        changes.continuation.yield()
    }
}
