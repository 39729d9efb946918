import AccessTokens
import AccessTokensDispatch
import TokenServiceConcurrency

/// Counts the requests to the server, whichever design sends them.
final class MeteredLoader: TokenLoader, AccessTokenLoader {
    struct Count: Sendable {
        private(set) var requests = 0
        private(set) var mostAtOnce = 0
        /// The number of rounds of requests that have brought a token.
        ///
        /// A round ends when no request is under way any more and at least one brought a token. There is one for the first token
        /// and one for each expiry.
        private(set) var rounds = 0
        private var underWay = 0
        private var hasToken = false

        fileprivate mutating func begin() {
            requests += 1
            underWay += 1
            mostAtOnce = max(mostAtOnce, underWay)
        }

        /// Returns whether a round is over.
        fileprivate mutating func end(hasToken brought: Bool) -> Bool {
            underWay -= 1
            hasToken = hasToken || brought
            guard underWay == 0, hasToken else { return false }
            hasToken = false
            rounds += 1
            return true
        }
    }

    /// An element at the end of each round.
    let rounds: AsyncStream<Void>
    private let ended: AsyncStream<Void>.Continuation
    private let counted = Lock(Count())
    private let loader: any TokenLoader

    init(_ loader: any TokenLoader) {
        self.loader = loader
        (rounds, ended) = AsyncStream.makeStream()
    }

    var count: Count { counted.withLock { $0 } }
    var isRepeatable: Bool { loader.isRepeatable }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        var hasToken = false
        counted.withLock { $0.begin() }
        defer { if counted.withLock({ [hasToken] in $0.end(hasToken: hasToken) }) { ended.yield() } }
        let token = try await loader.loadToken(replacing: previous)
        hasToken = true
        return token
    }

    func load(then handler: @escaping Handler) {
        Task {
            do { handler(.success(try await loadToken(replacing: nil))) } catch { handler(.failure(error)) }
        }
    }
}
