import AccessTokens
import DataLoading
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Creates loaders that share a session, a cache and tokens, but no state; passed from screen to screen.
struct MovieLoaderFactory {
    private let loaders: DataLoaderFactory
    private let api: URL

    init(cache: URLCache? = nil, session: URLSession = .shared, api: URL, tokens: TokenService) throws {
        loaders = DataLoaderFactory(session: session, cache: cache, tokens: try OriginTokens(tokens, for: [api]))
        self.api = api
    }

    /// A loader for one screen, which gets its results on the main queue.
    func makeLoader() -> MovieLoader {
        MovieLoader(loader: loaders.makeLoader(queue: .main), api: api)
    }
}
