import AccessTokens
import AccessTokensOAuth
import TokenServiceConcurrency

/// Callers of one service, who ask again and again until enough tokens have expired.
///
/// As in a real program every caller asks, uses its token for a while, and asks again: a short pause of random length.
final class RealRun: Sendable {
    private let service: TokenService
    private let callers: Int
    private let clock = ContinuousClock()
    private let tally = Lock(Tally())

    init(loader: some TokenLoader, callers: Int) {
        service = TokenService(loader: loader)
        self.callers = callers
    }

    /// Runs until enough tokens have been replaced, the time is up, or going on is pointless.
    func measure(expiries: Int, seconds: Int, print: @escaping @Sendable (String) -> Void) async -> RealSummary {
        let start = clock.now
        let following = follow(expiries: expiries, seconds: seconds, print: print)
        let asking = Task { [callers] in
            await withDiscardingTaskGroup { group in
                for _ in 0..<callers { group.addTask { await self.askAgainAndAgain() } }
            }
        }
        let timer = Task {
            try await Task.sleep(for: .seconds(seconds))
            following.cancel()
        }
        let watch = await following.value
        timer.cancel()
        asking.cancel()
        await asking.value
        return RealSummary(elapsed: start.duration(to: clock.now), watch: watch, callers: callers, tally.withLock { $0 })
    }

    /// Tells each event in a line, until the run is over or the task is cancelled.
    private func follow(expiries: Int, seconds: Int, print: @escaping @Sendable (String) -> Void) -> Task<Watch, Never> {
        let start = clock.now
        // Before the first caller asks.
        let events = service.events()
        return Task { [service, clock] in
            var watch = Watch(expiries: expiries)
            for await event in events {
                let time = start.duration(to: clock.now)
                print(time.line(watch.note(event)))
                if event.name == .loadSucceeded, watch.tokens == 1, let token = service.cachedToken {
                    let forecast = Watch.forecast(
                        lifetime: token.lifetime, refreshIn: token.refreshIn, expiries: expiries, seconds: seconds)
                    print(time.line(forecast))
                }
                if watch.isOver { break }
            }
            return watch
        }
    }

    private func askAgainAndAgain() async {
        var isFirst = true
        while !Task.isCancelled {
            let start = clock.now
            do {
                _ = try await service.retrieveToken()
                let wait = start.duration(to: clock.now)
                tally.withLock { [isFirst] in $0.answered(after: wait, isFirst: isFirst) }
                isFirst = false
            } catch {
                // A call that fails because the run ends does not count.
                if !Task.isCancelled { tally.withLock { $0.failures += 1 } }
            }
            // 0.1 s in the mean, longer for thousands, lest the lab measure itself.
            try? await Task.sleep(for: .milliseconds(max(100, callers / 5)) * Double.random(in: 0.5...1.5))
        }
    }
}

extension Options.Server {
    /// The loader of a client that acts in its own name.
    ///
    /// Without a lifetime a token is kept: the lab then says so, instead of guessing when it expires.
    func loader(secret: String) throws(UsageError) -> ClientCredentialsLoader {
        do {
            let client = try OAuthClient(
                id: clientID, authentication: postsSecret ? .clientSecretPost(secret) : .clientSecretBasic(secret),
                tokenURL: tokenURL, lifetimeWhenMissing: nil)
            return try ClientCredentialsLoader(client, scope: scope)
        } catch { throw UsageError("--token-url: \(error)") }
    }
}
