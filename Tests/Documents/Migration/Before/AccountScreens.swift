import Foundation

@MainActor final class ProfileScreen {
    private(set) var name = ""
    private let service: AccessTokenService

    init(service: AccessTokenService) {
        self.service = service
    }

    func appear() {
        service.retrieveToken { [weak self] result in
            switch result {
            case .success(let token): self?.name = "user of \(token.value)"
            case .failure: self?.name = "unknown"
            }
        }
    }

    func rename(_ name: String) {
        service.retrieveToken { [weak self] result in
            guard let token = try? result.get() else { return }
            self?.name = "\(name) of \(token.value)"
        }
    }

    func signOut() {
        service.signOut { self.name = "" }
    }
}
