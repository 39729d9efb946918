import DataLoading
import Dispatch
import Foundation

// What the articles' readers have written, in our own words.

final class LoginAPI: AccessTokenLoader {
    private let url: URL

    init(url: URL) {
        self.url = url
    }

    func load(then handler: @escaping (Result<AccessToken>) -> Void) {
        guard url.scheme == "https" else { return handler(.error(URLError(.badURL))) }
        handler(.value(AccessToken("token of \(url.path)")))
    }
}

class MovieAPI {
    private let service: AccessTokenService

    init(loader: AccessTokenLoader, queue: DispatchQueue) {
        service = AccessTokenService(loader: loader, queue: queue)
    }

    func loadTitle(then handler: @escaping @Sendable (Result<String>) -> Void) {
        service.retrieveToken { result in
            switch result {
            case .value(let token): handler(.value("movie with \(token.value)"))
            case .error(let error): handler(.error(error))
            }
        }
    }

    func prefetch(then handler: @escaping @Sendable (Bool) -> Void) {
        service.retrieveToken { result in
            guard let token = result.value, token.isValid else { return handler(false) }
            handler(true)
        }
    }
}

struct Movie: Decodable, Sendable {
    let title: String
}

struct Category {
    let genre: String
    let url: URL
}

/// Stands for UIKit's, which is on the main actor as well.
@MainActor class ViewController {
    var title: String?
    var next: ViewController?
}

class ProfileViewController: ViewController {
    private let service: AccessTokenService

    init(service: AccessTokenService) {
        self.service = service
    }

    func appear(then completion: @escaping @MainActor () -> Void) {
        service.retrieveToken { [weak self] result in
            MainActor.assumeIsolated {
                self?.title = result.value?.value ?? "signed out"
                completion()
            }
        }
    }
}

class TodoListViewController: ViewController {
    private let request: Request
    private let dataLoader = DataLoader()

    init(url: URL) {
        request = Request(url: url)
    }

    func loadItems(then completion: @escaping () -> Void) {
        dataLoader.perform(request) { [weak self] result in
            self?.render(result)
            completion()
        }
    }

    private func render(_ result: Result<Response>) {
        title = result.error == nil ? "to do" : "no list"
    }
}

class CategoryViewController: ViewController {
    private let category: Category
    private let loaderFactory: MovieLoaderFactory
    private lazy var loader: MovieLoader = self.loaderFactory.makeLoader()

    init(category: Category, loaderFactory: MovieLoaderFactory) {
        self.category = category
        self.loaderFactory = loaderFactory
    }

    func loadMovies(atSectionIndex sectionIndex: Int, then completion: @escaping () -> Void) {
        loader.loadMovies(in: category, sectionIndex: sectionIndex) { [weak self] result in
            self?.render(result)
            completion()
        }
    }

    func openRecommendations() {
        next = CategoryViewController(category: category, loaderFactory: loaderFactory)
    }

    private func render(_ result: Result<[Movie]>) {
        title = result.value?.first?.title ?? "no movies"
    }
}
