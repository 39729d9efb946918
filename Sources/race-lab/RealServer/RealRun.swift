import AccessTokens
import AccessTokensOAuth
import RaceGallery
import TokenServiceConcurrency

/// Callers of one design of a token service, who request tokens again and again until enough tokens have expired.
///
/// As in a real program every caller asks, uses its token for a while, and asks again: a short pause of random length.
final class RealRun: Sendable {
    /// The design's name, as in the simulated mode.
    let name: String
    /// The loader through which it asks the server.
    let server: MeteredLoader
    /// The way in which a caller gets a token.
    private let ask: @Sendable () async throws -> AccessToken
    private let tally = Lock(Tally())

    static var announcement: String {
        "The same callers with two other designs follow: each caller of the naive actor may send a request of its own."
            .wrapped(indent: 0)
    }

    /// The designs to compare with: one that loads for each caller, and one that makes all callers wait at expiry.
    static func others(with loader: some TokenLoader) -> [RealRun] {
        [
            RealRun(Design.reentrant, with: loader) { loader in
                let service = ReentrantTokenService(loader: loader)
                return { try await service.retrieveToken() }
            },
            RealRun(Design.threadSafe, with: loader) { loader in
                let service = ThreadSafeTokenService(loader: loader)
                return {
                    let answer = SingleResult<AccessToken>()
                    service.retrieveToken { answer.complete(with: $0) }
                    return try await answer.value()
                }
            },
        ]
    }

    /// This package's service, which prints its events as lines.
    static func ours(
        with loader: some TokenLoader, _ options: Options.Server, print: @escaping @Sendable (String) -> Void
    ) async -> RealSummary {
        let server = MeteredLoader(loader), service = TokenService(loader: server)
        let clock = ContinuousClock(), start = clock.now
        // Subscribe before the first caller asks.
        let events = service.events()
        let run = RealRun(name: Design.tokenService.name, server: server) { try await service.retrieveToken() }
        let (watch, figures) = await run.measure(options) {
            await Watch.follow(events, of: service, options, print: print)
        }
        return RealSummary(elapsed: start.duration(to: clock.now), watch: watch, callers: options.callers, figures)
    }

    private init(name: String, server: MeteredLoader, ask: @escaping @Sendable () async throws -> AccessToken) {
        (self.name, self.server, self.ask) = (name, server, ask)
    }

    private convenience init(
        _ design: Design, with loader: some TokenLoader,
        make: (MeteredLoader) -> @Sendable () async throws -> AccessToken
    ) {
        let server = MeteredLoader(loader)
        self.init(name: design.name, server: server, ask: make(server))
    }

    /// Runs until enough tokens have been replaced, or the time is up.
    func measure(_ options: Options.Server) async -> RealFigures {
        await measure(options) { [server] in
            var rounds = server.rounds.makeAsyncIterator()
            for _ in 0...options.expiries { await rounds.next() }
        }.figures
    }

    /// Runs until `end` returns, whose task is cancelled when the time is up.
    private func measure<End: Sendable>(
        _ options: Options.Server, until end: @escaping @Sendable () async -> End
    ) async -> (End, figures: RealFigures) {
        let ending = Task { await end() }
        let asking = Task {
            await withDiscardingTaskGroup { group in
                for _ in 0..<options.callers { group.addTask { await self.askAgainAndAgain(options.callers) } }
            }
        }
        let timer = Task {
            try await Task.sleep(for: .seconds(options.seconds))
            ending.cancel()
        }
        let result = await ending.value
        timer.cancel()
        asking.cancel()
        await asking.value
        return (result, RealFigures(name, server.count, tally.withLock { $0 }))
    }

    private func askAgainAndAgain(_ callers: Int) async {
        let clock = ContinuousClock()
        var isFirst = true
        while !Task.isCancelled {
            let start = clock.now
            do {
                _ = try await ask()
                let wait = start.duration(to: clock.now)
                tally.withLock { [isFirst] in $0.answered(after: wait, isFirst: isFirst) }
                isFirst = false
            } catch {
                // Don't count a call that fails because the run ends.
                if !Task.isCancelled { tally.withLock { $0.failures += 1 } }
            }
            // 0.1 s on average, longer for thousands of callers, so that the lab doesn't measure itself.
            try? await Task.sleep(for: .milliseconds(max(100, callers / 5)) * Double.random(in: 0.5...1.5))
        }
    }
}

extension Options.Server {
    /// The loader of a client that acts on its own behalf.
    ///
    /// If the server gives no lifetime, a token is kept, and the lab says so instead of guessing when it expires.
    func loader(in environment: [String: String]) throws(UsageError) -> ClientCredentialsLoader {
        let authentication: ClientAuthentication =
            switch authentication {
            case .basic: .clientSecretBasic(try Credentials.secret(in: environment))
            case .post: .clientSecretPost(try Credentials.secret(in: environment))
            case .assertion(let program, let arguments): .assertion(Credential.command(program, arguments).read)
            }
        do {
            let client = try OAuthClient(
                id: clientID, authentication: authentication, tokenURL: tokenURL, lifetimeWhenMissing: nil)
            return try ClientCredentialsLoader(client, scope: scope)
        } catch { throw UsageError("--token-url: \(error)") }
    }
}
