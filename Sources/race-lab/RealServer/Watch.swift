import TokenServiceConcurrency
import AccessTokens
import AccessTokensOAuth

/// Follows a service's events, prints a line for each, and decides when the run is over; a pure value.
struct Watch: Sendable {
    let expiries: Int
    private(set) var loads = 0
    private(set) var failedLoads = 0
    private(set) var tokens = 0
    /// Why there is no token, or no new one; `nil` again after a success.
    private(set) var error: String?
    private(set) var isOver = false

    init(expiries: Int) {
        self.expiries = expiries
    }

    /// Prints a line for each event, until the run is over or the task is cancelled.
    static func follow(
        _ events: AsyncStream<TokenEvent>, of service: TokenService, _ options: Options.Server, print: (String) -> Void
    ) async -> Watch {
        let clock = ContinuousClock(), start = clock.now
        var watch = Watch(expiries: options.expiries)
        for await event in events {
            let time = start.duration(to: clock.now)
            print(time.line(watch.note(event)))
            if event.name == .loadSucceeded, watch.tokens == 1, let token = service.cachedToken {
                let forecast = forecast(
                    lifetime: token.lifetime, refreshIn: token.refreshIn, expiries: options.expiries, seconds: options.seconds)
                print(time.line(forecast))
            }
            if watch.isOver { break }
        }
        return watch
    }

    /// Handles an event and returns its line.
    mutating func note(_ event: TokenEvent) -> String {
        let load = event.load.map { "load \($0) " } ?? ""
        switch event.name {
        case .loadStarted:
            loads += 1
            return load + "started: callers wait for it"
        case .refreshStarted:
            loads += 1
            return load + "started ahead of expiry: callers keep the current token"
        case .loadSucceeded:
            tokens += 1
            error = nil
            isOver = tokens > expiries
            return load + "succeeded: \(event.callers == 0 ? "no caller" : counted(event.callers, "caller")) waited for it"
        case .loadFailed:
            note(failure: event.error)
            // Without a first token there is nothing to measure, and waiting doesn't help with a permanent error.
            isOver = tokens == 0 || (event.error.map { $0.remedy != .retry } ?? false)
            // At the end of a run the summary gives the reason.
            return load + "failed, \(counted(event.callers, "caller")) got the reason\(isOver ? "" : ": \(error ?? "")")"
        case .refreshFailed:
            note(failure: event.error)
            return load + "failed, the current token stays: \(error ?? "")"
        default: return load + "\(event.name)"
        }
    }

    private mutating func note(failure: TokenServiceError?) {
        failedLoads += 1
        // The server's own reason, if it gave one.
        error = failure.map { ($0.underlying as? OAuthError)?.description ?? $0.description }
    }

    /// Returns an estimate of the run's duration, printed when the first token has arrived.
    static func forecast(lifetime: Duration?, refreshIn: Duration?, expiries: Int, seconds: Int) -> String {
        guard let lifetime else {
            return "The server names no lifetime, so no token expires: the run ends after \(seconds) s (--seconds)."
        }
        let policy = RefreshPolicy()
        let start = policy.refreshStart(forLifetime: lifetime, refreshIn: refreshIn, jitter: 0)
        let renewal = start ?? policy.hardExpiry(forLifetime: lifetime)
        let life = "Tokens live \(lifetime.short) and are replaced after about \(renewal.short)"
        let total = renewal * expiries
        let times = counted(expiries, "time")
        guard total <= .seconds(seconds) else {
            return "\(life); \(times) would take \(total.short): the run ends after \(seconds) s (--seconds)."
        }
        return "\(life): \(times) \(expiries == 1 ? "takes" : "take") about \(total.short)."
    }
}
