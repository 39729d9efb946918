package import AccessTokens
import Synchronization

/// The least that a thread-safe cache with expiry can do: lock, copy, read the clock, compare.
///
/// No async, no actor.
package final class Floor: Sendable {
    private let cached: Mutex<(token: AccessToken, expiry: Duration)>
    private let origin = ContinuousClock.now

    package init(_ token: AccessToken) {
        cached = Mutex((token, .seconds(3600)))
    }

    @inline(never) package func token() -> AccessToken? {
        let (token, expiry) = cached.withLock { $0 }
        return origin.duration(to: .now) < expiry ? token : nil
    }
}
