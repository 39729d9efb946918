/// Lets one caller pass each second: with the usual bug, or correctly.
package actor Limiter {
    private var next = ContinuousClock.now
    private let reserves: Bool

    /// - Parameter reserves: Whether a caller reserves its turn before it waits. Otherwise all waiting callers pass together.
    package init(reserves: Bool) {
        self.reserves = reserves
    }

    /// - Returns: When the caller passed.
    package func pass() async -> ContinuousClock.Instant {
        if reserves {
            let turn = max(next, .now)
            next = turn + .seconds(1)
            try? await Task.sleep(until: turn)
        } else {
            if next > .now { try? await Task.sleep(until: next) }
            next = .now + .seconds(1)
        }
        return .now
    }
}
