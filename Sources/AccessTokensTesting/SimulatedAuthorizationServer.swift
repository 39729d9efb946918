import AccessTokens
import TokenServiceConcurrency

/// An authorization server in memory, together with a resource server; it issues, rotates and revokes tokens, and can fail or be
/// slow.
///
/// A load that presents a refresh token continues that token's session. Any other is a client-credentials load; all of those
/// share one session, the client's own. Tokens are named `access-1`, `refresh-1` and so on, in order of issue.
///
/// **An exchange is decided when its load begins**: from then on the new token is valid and the one that it replaces is invalid.
/// The answer arrives after the server's latency. So an answer can be out of date when it arrives: revoked, replaced by a later
/// load whose answer came sooner, or expired. These are the races that a client has to survive. A load that is cancelled
/// meanwhile throws `CancellationError`, although the server has issued its token.
///
/// All methods may be called concurrently, from any thread; each decision is one step. Driven by a ``ManualClock``, the server
/// does nothing by itself. It remembers every token that it has issued, as long as it lives.
public final class SimulatedAuthorizationServer: Sendable {
    struct State: Sendable {
        var ledger: Ledger
        var latency: Duration
        var isReachable = true
        var loadsStarted = 0
        /// The troubles of the next loads, in order.
        var troubles: [Trouble] = []
        /// Async loads whose answer was lost.
        var forsaken = WaitingLine<Void, AccessToken>()
        /// Handlers of callback loads whose answer was lost; kept, as by networking code that waits for an answer.
        var forsakenHandlers: [@Sendable (Result<AccessToken, any Error>) -> Void] = []
    }

    let state: Lock<State>
    let clock: any Clock<Duration>
    let uptime: @Sendable () -> Duration
    let executor: (any TaskExecutor)?
    let rotatesRefreshTokens: Bool

    /// Creates a server that has issued nothing.
    ///
    /// - Parameters:
    ///   - clock: The clock that measures lifetimes and latency.
    ///   - tokenLifetime: How long a token is valid, from the beginning of its load; `nil`: until revoked.
    ///   - latency: How long an answer takes, including a failure.
    ///   - keepsOneTokenValid: Whether issuing a token revokes the earlier one of the same session.
    ///   - rotatesRefreshTokens: Whether a refresh token is good for one refresh; presented again, it ends its session.
    ///     Source: RFC 9700 §4.14.2.
    ///   - executor: Where delayed answers of a callback load arrive; `nil`: on the default pool.
    public init(
        clock: any Clock<Duration> = ContinuousClock(),
        tokenLifetime: Duration? = .seconds(3600),
        latency: Duration = .zero,
        keepsOneTokenValid: Bool = true,
        rotatesRefreshTokens: Bool = false,
        executor: (any TaskExecutor)? = nil
    ) {
        let ledger = Ledger(
            tokenLifetime: tokenLifetime, keepsOneTokenValid: keepsOneTokenValid,
            rotatesRefreshTokens: rotatesRefreshTokens)
        state = Lock(State(ledger: ledger, latency: latency))
        self.clock = clock
        self.uptime = Self.uptime(of: clock)
        self.executor = executor
        self.rotatesRefreshTokens = rotatesRefreshTokens
    }

    /// Returns the time since now, on a clock whose instants only this function knows.
    private static func uptime<C: Clock<Duration>>(of clock: C) -> @Sendable () -> Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }
}
