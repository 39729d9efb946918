import Dispatch
import TokenServiceConcurrency

/// Calls a function after a time, on its own queue, which waits for neither Foundation nor the cooperative pool.
///
/// Uses a Dispatch timer, because a cancelled `Task.sleep` stays in memory until its time has come.
final class TimeLimit: Sendable {
    private static let queue = DispatchQueue(label: "AccessTokensHTTP.TimeLimit")

    private let seconds: Double
    private let timer: Lock<any DispatchSourceTimer>

    /// Starts a limit, kept between no time at all and ten years.
    init(seconds: Double, _ isOver: @escaping @Sendable () -> Void) {
        self.seconds = Self.bounded(seconds)
        let timer = DispatchSource.makeTimerSource(queue: Self.queue)
        timer.setEventHandler(handler: isOver)
        timer.schedule(deadline: .now() + self.seconds)
        timer.activate()
        self.timer = Lock(timer)
    }

    deinit {
        cancel()
    }

    /// Returns a number of seconds between 0 and ten years; ten years for NaN.
    static func bounded(_ seconds: Double) -> Double {
        let longest = Duration.longest / .seconds(1)
        return seconds < longest ? max(seconds, 0) : longest
    }

    /// Restarts the limit.
    func restart() {
        timer.withLock { $0.schedule(deadline: .now() + seconds) }
    }

    /// Ends the limit and releases the function.
    func cancel() {
        timer.withLock { $0.cancel() }
    }
}

extension Duration {
    /// The longest supported limit, ten years: no process runs longer.
    package static let longest = Duration.seconds(10 * 365 * 86_400)

    /// Returns a number of seconds as a duration of at most ``longest``; `nil` if it is negative, infinite or not a number.
    ///
    /// `Duration.seconds(_:)` itself traps on NaN, on infinities and on large values.
    package static func seconds(read seconds: Double) -> Duration? {
        guard seconds >= 0, seconds.isFinite else { return nil }
        guard seconds < longest / .seconds(1) else { return longest }
        // `Duration.seconds(_: Double)` makes 3599.000000000000524288 of 3599.
        let whole = Int64(seconds)
        return .seconds(whole) + .nanoseconds(Int64(((seconds - Double(whole)) * 1e9).rounded()))
    }
}
