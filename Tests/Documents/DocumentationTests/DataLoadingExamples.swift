import AccessTokens
import DataLoading
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// Every Swift block of the guide to `DataLoading`, with just enough code around them to compile.

struct Movie: Decodable, Sendable {
    let title: String
}

func show(_ movies: Result<[Movie], any Error>) {}
func show(_ poster: Result<Data, any Error>) {}
func show(_ received: Int64, of expected: Int64?) {}
func showSpinner() {}

/// A screen, as a view controller is one.
@MainActor final class MoviesScreen {
    private let loader: DataLoader
    private let moviesURL: URL
    private(set) var status: Int?

    init(factory: DataLoaderFactory, moviesURL: URL) {
        loader = factory.makeLoader(queue: .main)
        self.moviesURL = moviesURL
    }

    func open() {
        loader.perform(Request(url: moviesURL)) { [weak self] result in
            MainActor.assumeIsolated { self?.render(result) }
        }
    }

    private func render(_ result: Result<Response, any Error>) {
        status = try? result.get().status
    }
}

func perform(_ tokens: TokenService, _ apiURL: URL, _ moviesURL: URL, _ posterURL: URL, _ cache: URLCache) async throws {
    let origins = try OriginTokens(tokens, for: [apiURL])
    let factory = DataLoaderFactory(
        session: .shared, cache: cache, tokens: origins)

    let loader = factory.makeLoader(queue: .main)
    let request = Request(url: moviesURL)
    let movies = try await loader.perform(request, as: [Movie].self)
    show(.success(movies))

    loader.perform(Request(url: moviesURL)) { result in
        show(Result { try result.get().decoded(as: [Movie].self) })
    }

    let poster = loader.start(Request(url: posterURL))
    for await state in poster.states {
        switch state {
        case .pending: showSpinner()
        case .ongoing(let progress):
            show(progress.bytesReceived, of: progress.bytesToReceive)
        case .completed(let result): show(result.map(\.body))
        }
    }
}
