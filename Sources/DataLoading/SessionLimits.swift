import AccessTokensOAuth
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The time limits of a session's configuration, kept from outside of the session.
///
/// On Linux the session keeps none while Foundation reads a long header, knows only whole seconds, and never looks at the
/// limit for the whole answer. On Apple platforms it keeps them itself, and knows what counts.
struct SessionLimits: Sendable {
    private let silence: TimeInterval
    private let whole: TimeInterval

    /// Takes the limits over from a configuration, and makes its own a second line behind them.
    init(takingOver configuration: URLSessionConfiguration) {
        silence = configuration.timeoutIntervalForRequest
        whole = configuration.timeoutIntervalForResource
        #if canImport(FoundationNetworking)
        configuration.timeoutIntervalForRequest = silence.rounded(.up) + 1
        #endif
    }

    /// Starts to watch one exchange; `isOver` is called when a limit is reached first.
    func watch(_ isOver: @escaping @Sendable () -> Void) -> Watch {
        #if canImport(FoundationNetworking)
        Watch(silence: TimeLimit(seconds: silence, isOver), whole: TimeLimit(seconds: whole, isOver))
        #else
        Watch(silence: nil, whole: nil)
        #endif
    }

    /// The limits of one exchange while it runs.
    struct Watch: Sendable {
        fileprivate let silence: TimeLimit?
        fileprivate let whole: TimeLimit?

        /// Says that bytes were sent or have arrived.
        func heard() { silence?.restart() }

        /// Ends the limits.
        func end() {
            silence?.cancel()
            whole?.cancel()
        }
    }
}
