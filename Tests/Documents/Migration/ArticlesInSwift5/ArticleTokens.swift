import AccessTokens
import AccessTokensDispatch
import Dispatch

typealias AccessToken = AccessTokens.AccessToken

/// The first article's loader.
nonisolated protocol AccessTokenLoader: Sendable {
    typealias Handler = @Sendable (Result<AccessToken>) -> Void

    @preconcurrency func load(then handler: @escaping Handler)
}

/// The first article's service.
///
/// `@preconcurrency`: in Swift 6 mode a handler that isn't safe on any thread is a warning, and in Swift 5 mode no error.
nonisolated final class AccessTokenService: Sendable {
    typealias Handler = @Sendable (Result<AccessToken>) -> Void

    /// The same service for async callers.
    let tokens: TokenService
    private let callbacks: AccessTokensDispatch.AccessTokenService

    init(loader: any AccessTokenLoader, queue: DispatchQueue = DispatchQueue(label: "AccessToken")) {
        tokens = TokenService(loader: PackageLoader(loader: loader).tokenLoader)
        callbacks = AccessTokensDispatch.AccessTokenService(service: tokens, queue: queue)
    }

    @preconcurrency func retrieveToken(then handler: @escaping Handler) {
        callbacks.retrieveToken { handler(Result($0)) }
    }
}

private nonisolated struct PackageLoader: AccessTokensDispatch.AccessTokenLoader {
    let loader: any AccessTokenLoader

    func load(then handler: @escaping Handler) {
        loader.load { handler($0.standard) }
    }
}
