import AccessTokens
import TokenServiceConcurrency

/// Follows the events of a run to their end and prints them; holds no service, so that the service can end.
final class Follower: Sendable {
    /// Answered when going on is pointless.
    let enough = SingleResult<Void>()
    private let expiries: Int
    private let seconds: Int
    private let watch: Lock<Watch>
    private let isDone = Lock(false)

    init(expiries: Int, seconds: Int) {
        self.expiries = expiries
        self.seconds = seconds
        watch = Lock(Watch(expiries: expiries))
    }

    var result: Watch { watch.withLock { $0 } }

    /// Ignores what happens from now on.
    func stop() {
        isDone.withLock { $0 = true }
    }

    /// Returns when the service has been released and everything that it had begun has ended.
    func follow(_ service: TokenService, print: @escaping @Sendable (String) -> Void) -> Task<Void, Never> {
        let clock = ContinuousClock()
        let start = clock.now
        let events = service.events()
        return Task { [weak service] in
            var isForecast = false
            for await event in events {
                if isDone.withLock({ $0 }) { continue }
                let (line, isOver) = watch.withLock { ($0.note(event), $0.isOver) }
                print(Self.line(line, at: start.duration(to: clock.now)))
                if !isForecast, [.loadSucceeded, .restored].contains(event.name), let token = service?.cachedToken {
                    isForecast = true
                    let forecast = Watch.forecast(
                        lifetime: token.lifetime, refreshIn: token.refreshIn, spends: token.refreshToken != nil,
                        expiries: expiries, seconds: seconds)
                    print(Self.line(forecast))
                }
                if isOver { enough.complete(with: .success(())) }
            }
        }
    }

    /// A line of the log: the time since the start with milliseconds, in a column, and what happened then.
    static func line(_ text: String, at elapsed: Duration? = nil) -> String {
        let stamp = elapsed.map { elapsed in
            let milliseconds = elapsed.nanoseconds / 1_000_000
            return "\(milliseconds / 1000).\("\(1000 + milliseconds % 1000)".dropFirst()) s"
        }
        let column = 10
        let space = String(repeating: " ", count: max(column - (stamp ?? "").count, 0))
        return "\(space)\(stamp ?? "")  \(text)".wrapped(indent: column + 2)
    }
}
