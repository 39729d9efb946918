import AccessTokens
import AccessTokensDispatch
import Dispatch
import TokenServiceConcurrency

/// Async and callback callers of one service, who ask again and again until enough tokens have expired.
///
/// As in a real program every caller asks, uses its token for a while, and asks again: a short pause of random length.
final class RealRun: Sendable {
    let service: TokenService
    let callbacks: AccessTokenService
    let callers: Int
    let clock = ContinuousClock()
    let isOver = Lock(false)
    let asyncTally: Lock<Tally>
    let callbackTally: Lock<Tally>
    private let seconds: Int
    private let keepsGrant: Bool

    /// - Parameter keepsGrant: Whether the store outlives the run, so that the run must not end in a sign-out.
    init(
        loader: some TokenLoader, store: (any TokenStore)? = nil, keepsGrant: Bool = false, callers: Int, seconds: Int
    ) {
        service = TokenService(store: store, loader: loader)
        // Both kinds of callers share one service, and so one token and one load.
        callbacks = AccessTokenService(service: service, queue: DispatchQueue(label: "AccessToken"))
        self.callers = callers
        self.seconds = seconds
        self.keepsGrant = keepsGrant
        asyncTally = Lock(Tally(callers: callers))
        callbackTally = Lock(Tally(callers: callers))
    }

    /// A pause between two questions of a caller: 0.1 s in the mean, longer for thousands, lest the lab measure itself.
    var pause: Duration {
        .milliseconds(max(100, callers / 5)) * Double.random(in: 0.5...1.5)
    }

    /// Runs until enough tokens have been replaced, the time is up, or going on is pointless; returns how long that took.
    func run(followedBy follower: Follower) async -> Duration {
        let start = clock.now
        let asyncCallers = Task { await askAsync() }
        let callbackCallers = Task { await askWithCallbacks() }
        let timer = Task { [seconds] in
            try? await Task.sleep(for: .seconds(seconds))
            follower.enough.complete(with: .success(()))
        }
        try? await follower.enough.value()
        timer.cancel()
        let elapsed = start.duration(to: clock.now)
        isOver.withLock { $0 = true }
        asyncCallers.cancel()
        if !keepsGrant {
            follower.stop()
            // Ends the waiting of callbacks, which cannot be cancelled. With a grant to keep they wait for the load's own end:
            // it may have spent the refresh token, and a reset would throw the next one away.
            _ = await service.reset()
        }
        await asyncCallers.value
        await callbackCallers.value
        return elapsed
    }

    /// Runs, and with a grant to keep waits until everything that the service had begun has ended, saves above all.
    ///
    /// - Parameter make: Makes the run, which must have no other owner: the service ends when it is released.
    static func measure(
        expiries: Int, print: @escaping @Sendable (String) -> Void, of make: () async throws -> RealRun
    ) async rethrows -> RealSummary {
        let run = try await make()
        let follower = Follower(expiries: expiries, seconds: run.seconds)
        let following = follower.follow(run.service, print: print)
        let elapsed = await run.run(followedBy: follower)
        let tallies = (run.asyncTally.withLock { $0 }, run.callbackTally.withLock { $0 })
        let keepsGrant = run.keepsGrant
        // Releases the service, which then ends.
        _ = consume run
        if keepsGrant { await following.value }
        return RealSummary(
            elapsed: elapsed, watch: follower.result, asyncCallers: tallies.0, callbackCallers: tallies.1)
    }
}
