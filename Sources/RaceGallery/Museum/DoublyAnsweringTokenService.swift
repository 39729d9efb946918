import AccessTokens

/// Museum 16: a continuation is resumed twice.
///
/// The load and the time limit both hold the caller's continuation, and whoever comes first cancels the other. But
/// cancelling is a request: the limit has passed, its task has woken and not yet run; the load's answer comes, cancels it
/// and answers the caller; the limit's task goes on where it was, and answers again. Swift's own continuation ends the
/// process then; the one of this exhibit tells the museum.
///
/// Shipped: okta-mobile-swift#170. Sits: in the two lines that cancel, neither of which asks whether it was in time.
struct DoublyAnsweringTokenService: Sendable {
    let loader: any TokenLoader
    let clock: any Clock<Duration>
    let limit: Duration
    let executor: any TaskExecutor
    /// Told of each answer, in place of Swift's own check.
    let onAnswer: WatchedContinuation.Observer

    struct TimedOut: Error, CustomStringConvertible {
        let description = "the time limit has passed"
    }

    func retrieveToken() async throws -> AccessToken {
        try await WatchedContinuation.wait(onResume: onAnswer) { continuation in
            let load = Task(executorPreference: executor) { try await loader.loadToken(replacing: nil) }
            let alarm = Task(executorPreference: executor) {
                try await clock.sleep(for: limit)
                load.cancel()
                continuation.resume(with: .failure(TimedOut()))
            }
            Task(executorPreference: executor) {
                let result = await load.result
                // The alarm has answered.
                guard !load.isCancelled else { return }
                // The race: the alarm may have rung already, and only wait for its turn.
                alarm.cancel()
                continuation.resume(with: result)
            }
        }
    }
}
