package import Dispatch

/// The first article's third stage: a service whose state is accessed only on its queue.
package final class AccessTokenService: @unchecked Sendable {
    package typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    private let loader: AccessTokenLoader
    private let queue: DispatchQueue
    private var token: AccessToken?
    private var pendingHandlers: [Handler] = []

    package init(loader: AccessTokenLoader, queue: DispatchQueue = DispatchQueue(label: "AccessToken")) {
        self.loader = loader
        self.queue = queue
    }

    package func retrieveToken(then handler: @escaping Handler) {
        queue.async { [weak self] in self?.performRetrieval(with: handler) }
    }

    private func performRetrieval(with handler: @escaping Handler) {
        dispatchPrecondition(condition: .onQueue(queue))
        if let token, token.isValid { return handler(.success(token)) }
        pendingHandlers.append(handler)
        guard pendingHandlers.count == 1 else { return }
        loader.load { [weak self] result in
            self?.queue.async { self?.handle(result) }
        }
    }

    private func handle(_ result: Result<AccessToken, any Error>) {
        dispatchPrecondition(condition: .onQueue(queue))
        if case .success(let loaded) = result { token = loaded }
        let handlers = pendingHandlers
        pendingHandlers = []
        for handler in handlers { handler(result) }
    }
}

/// The same with a mistake: it asks on the queue whether a load is under way, but decides outside it.
package final class HastyAccessTokenService: @unchecked Sendable {
    private let loader: AccessTokenLoader
    private let queue = DispatchQueue(label: "AccessToken")
    private var token: AccessToken?
    private var pendingHandlers: [AccessTokenService.Handler] = []

    package init(loader: AccessTokenLoader) {
        self.loader = loader
    }

    package func retrieveToken(then handler: @escaping AccessTokenService.Handler) {
        let (present, isLoading) = queue.sync { (token, !pendingHandlers.isEmpty) }
        if let present, present.isValid { return handler(.success(present)) }
        queue.sync { pendingHandlers.append(handler) }
        guard !isLoading else { return }
        loader.load { result in
            self.queue.async {
                self.token = try? result.get()
                let handlers = self.pendingHandlers
                self.pendingHandlers = []
                for handler in handlers { handler(result) }
            }
        }
    }
}

package struct AccessToken: Sendable, Equatable {
    package let number: Int
    package let isValid: Bool
}

/// Loads a token in two seconds, and counts its loads on its own queue.
package final class AccessTokenLoader: @unchecked Sendable {
    private let network = DispatchQueue(label: "network")
    private var loads = 0

    package init() {}

    package var count: Int { network.sync { loads } }

    package func load(then handler: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) {
        network.async { self.loads += 1 }
        network.asyncAfter(deadline: .now() + 2) {
            handler(.success(AccessToken(number: self.loads, isValid: true)))
        }
    }
}
