import Dispatch
import Foundation

struct AccessToken: Decodable {
    let value: String
    let expiry: Date

    var isValid: Bool { expiry > Date() }
}

protocol AccessTokenLoader {
    typealias Handler = (Result<AccessToken, any Error>) -> Void

    func load(then handler: @escaping Handler)
}

/// The article's last stage, with a sign-out.
final class AccessTokenService {
    typealias Handler = (Result<AccessToken, any Error>) -> Void

    private let loader: any AccessTokenLoader
    private let queue: DispatchQueue
    private var token: AccessToken?
    private var pendingHandlers: [Handler] = []

    init(loader: any AccessTokenLoader, queue: DispatchQueue) {
        self.loader = loader
        self.queue = queue
    }

    func retrieveToken(then handler: @escaping Handler) {
        queue.async { [weak self] in self?.retrieve(handler) }
    }

    func signOut(then handler: @escaping () -> Void) {
        queue.async { [weak self] in
            self?.token = nil
            handler()
        }
    }

    private func retrieve(_ handler: @escaping Handler) {
        if let token, token.isValid { return handler(.success(token)) }
        pendingHandlers.append(handler)
        guard pendingHandlers.count == 1 else { return }
        loader.load { [weak self, queue] result in
            queue.async { [weak self] in self?.finish(with: result) }
        }
    }

    private func finish(with result: Result<AccessToken, any Error>) {
        token = try? result.get()
        let handlers = pendingHandlers
        pendingHandlers = []
        for handler in handlers { handler(result) }
    }
}
