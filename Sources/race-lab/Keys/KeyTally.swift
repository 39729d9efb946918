import AccessTokens
import TokenServiceConcurrency

/// What happened in a run over many keys, counted beside the services: none of it is what they say of themselves.
final class KeyTally: Sendable {
    struct Counts: Sendable, Equatable {
        var calls = 0
        var failures = 0
        var loads = 0
        /// The calls that got another key's token.
        var wrongTokens = 0
        /// How many services there are, used, kept or not yet ended.
        var services = 0
        /// The most that there were at once.
        var mostServices = 0
        /// The keys that have to sign in again.
        var refused: Set<Int> = []
        /// Why the first call failed.
        var reason: String?
        /// The longest lifetime of a token; `nil`: none has one.
        var lifetime: Duration?
    }

    private let counts = Lock(Counts())
    private let isForeign: @Sendable (Int, AccessToken) -> Bool

    /// - Parameter isForeign: Whether a token that a key got is another key's.
    init(isForeign: @escaping @Sendable (_ key: Int, _ token: AccessToken) -> Bool) {
        self.isForeign = isForeign
    }

    /// What was counted since the last time; what is there at the moment, and the keys that are refused, go on.
    func take() -> Counts {
        counts.withLock { counts in
            defer {
                counts = Counts(
                    services: counts.services, mostServices: counts.services, refused: counts.refused, lifetime: counts.lifetime)
            }
            return counts
        }
    }

    /// How many keys have to sign in again.
    var refused: Int { counts.withLock { $0.refused.count } }

    /// A call has ended.
    func note(_ outcome: Result<AccessToken, any Error>, of key: Int) {
        let isWrong = (try? outcome.get()).map { isForeign(key, $0) } ?? false
        counts.withLock { counts in
            counts.calls += 1
            if isWrong { counts.wrongTokens += 1 }
            switch outcome {
            case .success(let token): counts.lifetime = [counts.lifetime, token.lifetime].compactMap(\.self).max()
            case .failure(let error):
                counts.failures += 1
                let error = error as? TokenServiceError
                if error?.remedy == .signIn { counts.refused.insert(key) }
                counts.reason = counts.reason ?? error.map(Watch.reason) ?? "a call was cancelled"
            }
        }
    }

    /// A loader that counts, for one service: it lives as long as its service does.
    func counting(_ loader: some TokenLoader) -> any TokenLoader { Counter(loader, for: self) }

    private final class Counter<Loader: TokenLoader>: TokenLoader {
        private let loader: Loader
        private let tally: KeyTally

        init(_ loader: Loader, for tally: KeyTally) {
            self.loader = loader
            self.tally = tally
            tally.counts.withLock { counts in
                counts.services += 1
                counts.mostServices = max(counts.mostServices, counts.services)
            }
        }

        deinit { tally.counts.withLock { $0.services -= 1 } }

        var isRepeatable: Bool { loader.isRepeatable }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            tally.counts.withLock { $0.loads += 1 }
            return try await loader.loadToken(replacing: previous)
        }
    }
}
