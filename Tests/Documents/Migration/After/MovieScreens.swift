import Foundation

@MainActor final class MovieListScreen {
    private(set) var text = ""
    private let service: AccessTokenService

    init(service: AccessTokenService) {
        self.service = service
    }

    func appear() {
        service.retrieveToken { [weak self] result in
            switch result {
            case .success(let token): self?.text = "movies with \(token.value)"
            case .failure: self?.text = "no movies"
            }
        }
    }

    func refresh() {
        text = "refreshing"
        service.retrieveToken(then: show)
    }

    private func show(_ result: Result<AccessToken, any Error>) {
        text = "fresh movies with \((try? result.get())?.value ?? "no token")"
    }
}

@MainActor final class MovieScreen {
    private(set) var lines: [String] = []
    private let service: AccessTokenService

    init(service: AccessTokenService) {
        self.service = service
    }

    func appear() {
        service.retrieveToken { result in
            guard let token = try? result.get() else { return }
            self.lines.append("movie with \(token.value)")
        }
    }

    func showCast(then completion: @escaping () -> Void) {
        service.retrieveToken { result in
            self.lines.append("cast with \((try? result.get())?.value ?? "no token")")
            completion()
        }
    }
}

@MainActor final class SearchScreen {
    private(set) var found: [String: String] = [:]
    private let service: AccessTokenService

    init(service: AccessTokenService) {
        self.service = service
    }

    func search(_ words: String) {
        service.retrieveToken { [self] in found[words] = (try? $0.get())?.value }
    }
}
