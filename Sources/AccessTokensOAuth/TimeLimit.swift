import Dispatch
import TokenServiceConcurrency

/// Calls a function when its time is over, on a queue of its own, which waits for neither Foundation nor the cooperative pool.
///
/// A timer of Dispatch, not `Task.sleep`: what is cancelled of that stays in memory until its time.
package final class TimeLimit: Sendable {
    private static let queue = DispatchQueue(label: "TimeLimit")

    private let seconds: Double
    private let timer: Lock<any DispatchSourceTimer>

    /// Starts a limit of so many seconds; ten years at most.
    package init(seconds: Double, _ isOver: @escaping @Sendable () -> Void) {
        let longest = Duration.longest / .seconds(1)
        self.seconds = seconds < longest ? max(seconds, 0) : longest
        let timer = DispatchSource.makeTimerSource(queue: Self.queue)
        timer.setEventHandler(handler: isOver)
        timer.schedule(deadline: .now() + self.seconds)
        timer.activate()
        self.timer = Lock(timer)
    }

    deinit {
        cancel()
    }

    /// Begins to count anew.
    package func restart() {
        timer.withLock { $0.schedule(deadline: .now() + seconds) }
    }

    /// Ends the limit, and lets go of the function.
    package func cancel() {
        timer.withLock { $0.cancel() }
    }
}
