#if URLSession
#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif
#else
import FoundationEssentials
#endif

/// How long one exchange may take, in seconds.
///
/// We enforce it ourselves, since Foundation doesn't do so reliably.
///
/// On Linux a session keeps no limit while Foundation reads a long header, supports only whole seconds, and ignores the limit for
/// the whole answer.
package struct TimeLimits: Sendable {
    /// How long nothing may be sent or received; `nil`: without a limit.
    private let silence: TimeInterval?
    /// How long the exchange may take from its beginning to the last byte; `nil`: without a limit.
    private let whole: TimeInterval?

    /// Limits the whole exchange.
    package init(whole: Duration) {
        silence = nil
        self.whole = whole / .seconds(1)
    }

    #if URLSession
    /// Takes over the limits of a configuration, whose own become a fallback.
    ///
    /// On Apple platforms the session enforces them itself, and nothing is taken over.
    package init(takingOver configuration: URLSessionConfiguration) {
        #if canImport(FoundationNetworking)
        let silence = TimeLimit.bounded(configuration.timeoutIntervalForRequest)
        self.silence = silence
        whole = configuration.timeoutIntervalForResource
        // Bounded, because Foundation converts it to an integer, which crashes for infinity and NaN.
        configuration.timeoutIntervalForRequest = silence.rounded(.up) + 1
        #else
        (silence, whole) = (nil, nil)
        #endif
    }
    #endif

    #if URLSession
    /// The limit of whole exchanges that a configuration sets.
    package static func whole(of configuration: URLSessionConfiguration) -> Duration {
        .seconds(TimeLimit.bounded(configuration.timeoutIntervalForResource))
    }
    #endif

    /// Starts to watch one exchange; `isOver` is called when it exceeds a limit.
    package func watch(_ isOver: @escaping @Sendable () -> Void) -> Watch {
        Watch(
            silence: silence.map { TimeLimit(seconds: $0, isOver) },
            whole: whole.map { TimeLimit(seconds: $0, isOver) })
    }

    /// The limits of one exchange while it runs.
    package struct Watch: Sendable {
        fileprivate let silence: TimeLimit?
        fileprivate let whole: TimeLimit?

        /// Notes that bytes were sent or have arrived.
        func heard() { silence?.restart() }

        /// Ends the limits.
        package func end() {
            silence?.cancel()
            whole?.cancel()
        }
    }
}
