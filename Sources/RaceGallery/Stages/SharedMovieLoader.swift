import TokenServiceConcurrency

/// The second article's second trap: one loader for all screens, as a singleton would be.
///
/// Right: a single screen gets its movies, and closing it cancels its requests.
///
/// Wrong with two screens:
/// - the movies that it holds are **those that arrived last**, for whichever screen;
/// - a screen that closes cancels the other's requests too.
///
/// The state has a lock, so that the trap is a race of events and not of memory. The right design: a loader for each screen,
/// created by a factory that shares the dependencies (`MovieLoaderFactory` in `movie-screens`).
package final class SharedMovieLoader: Sendable {
    private struct State: Sendable {
        var movies = ""
        /// Counts the cancellations; requests from before the last one are ignored.
        var cancellations = 0
    }

    private let state = Lock(State())
    private let fetch: @Sendable @concurrent (_ genre: String) async throws -> String

    /// Creates the loader that all screens are to use.
    ///
    /// - Parameter fetch: Sends the request to the server.
    package init(fetch: @escaping @Sendable @concurrent (_ genre: String) async throws -> String) {
        self.fetch = fetch
    }

    /// The movies that a screen shows.
    package var movies: String { state.withLock { $0.movies } }

    /// Loads the movies of a genre into ``movies``.
    ///
    /// - Throws: `CancellationError` if a screen cancelled meanwhile, or what the server throws.
    package func loadMovies(of genre: String) async throws {
        let before = state.withLock { $0.cancellations }
        let answer = try await fetch(genre)
        try state.withLock { state in
            // The race: other screens may have cancelled or loaded meanwhile.
            guard state.cancellations == before else { throw CancellationError() }
            state.movies = answer
        }
    }

    /// Cancels all requests, as a screen's `deinit` does without knowing of other screens.
    package func cancelAll() { state.withLock { $0.cancellations += 1 } }
}
