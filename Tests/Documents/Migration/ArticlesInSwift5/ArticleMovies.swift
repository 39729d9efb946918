import DataLoading
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Loads movies for one screen.
@MainActor final class MovieLoader {
    private let loader: DataLoader

    init(loader: DataLoader) {
        self.loader = loader
    }

    deinit {
        cancelAllRequests()
    }

    func loadMovies(
        in category: Category, sectionIndex: Int, then handler: @escaping @MainActor (Result<[Movie]>) -> Void
    ) {
        let request = Request(url: category.url, parameters: ["section": "\(sectionIndex)", "genre": category.genre])
        loader.perform(request) { result in
            handler(Result(Swift.Result { try result.standard.get().decoded() }))
        }
    }

    nonisolated func cancelAllRequests() {
        loader.cancelAllRequests()
    }
}

/// Makes a loader for each screen, with what all of them share.
@MainActor final class MovieLoaderFactory {
    private let loaders: DataLoaderFactory

    init(cache: URLCache, session: URLSession, tokens: OriginTokens? = nil) {
        loaders = DataLoaderFactory(session: session, cache: cache, tokens: tokens)
    }

    func makeLoader() -> MovieLoader {
        MovieLoader(loader: DataLoader(factory: loaders))
    }
}
