public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a ``TokenService`` has no token for a caller.
///
/// A caller that is cancelled gets a `CancellationError` instead.
public struct TokenServiceError: Error, Sendable {
    /// The kind of error, as a value to compare.
    public struct Code: Sendable, Hashable, Described {
        /// The loader threw; ``TokenServiceError/underlying`` is its error.
        public static let loadFailed = Code(text: "loadFailed")
        /// The load took longer than `RefreshPolicy(loadTimeout:)`, or one that did is still running.
        public static let loadTimedOut = Code(text: "loadTimedOut")
        /// The caller's own limit, given with `within:`, passed first; the load continues for the others.
        public static let deadlineExceeded = Code(text: "deadlineExceeded")
        /// The service was reset (signed out) while the caller waited, or after the refused request was sent.
        public static let reset = Code(text: "reset")
        /// The loader returned a token whose lifetime had passed when it arrived.
        public static let tokenExpiredOnArrival = Code(text: "tokenExpiredOnArrival")
        /// No load may start for a refused token or a demanded one, since such loads have been 5 in 30 s.
        public static let tooManyInvalidations = Code(text: "tooManyInvalidations")
        /// The store failed or took too long; ``TokenServiceError/underlying`` is its error.
        public static let storeFailed = Code(text: "storeFailed")
        /// There is no valid token, and a drained service loads none; see ``TokenService/drain(within:)``.
        public static let drained = Code(text: "drained")
        /// A loader requested a token from its own service, or from a key that shares its grant, so it would wait for itself.
        public static let loaderWaitsForItself = Code(text: "loaderWaitsForItself")

        package let text: String
    }

    /// How to recover from a failure to get a token.
    public struct Remedy: Sendable, Hashable, Described {
        /// Waiting helps: the network failed, the server was busy, or its response was unreadable.
        ///
        /// After the first failure the next caller's load starts at once; after that, the pauses grow.
        public static let retry = Remedy(text: "retry")

        /// A new sign-in helps: the grant itself is refused (`invalid_grant`), or the user signed out.
        ///
        /// After a refused grant the service doesn't ask the server again until ``TokenService/replace(with:)``,
        /// ``TokenService/reset()`` or ``TokenService/retryNow()``.
        public static let signIn = Remedy(text: "signIn")

        /// The client's own credentials or registration must change (`invalid_client`).
        ///
        /// The service tries again with the longest pause, so that a server program recovers without a restart.
        public static let clientRegistration = Remedy(text: "clientRegistration")

        /// A new sign-in or corrected credentials help: the server refused without saying whether it meant the grant or the
        /// client.
        ///
        /// The service tries again with the longest pause. The third or a later such refusal in a row, at least ten minutes after
        /// the first one, counts as a refused grant, with the remedy ``signIn``, so that a program learns that its session is dead.
        public static let signInOrRegistration = Remedy(text: "signInOrRegistration")

        /// The program or its configuration must change: neither time nor a new sign-in helps.
        ///
        /// The service tries again with the longest pause.
        public static let programChange = Remedy(text: "programChange")

        package let text: String
    }

    /// The kind of error.
    public var code: Code { details.code }

    /// The loader's own error, if it was one.
    public var underlying: (any Error)? { details.underlying }

    /// How to recover from the failure.
    public var remedy: TokenServiceError.Remedy { details.remedy }

    /// The earliest moment, on the wall clock, at which the service asks the server again; `nil` if time won't help.
    ///
    /// Until then callers get this same error without a load.
    public var retryAt: Date? { details.retryAt }

    /// When the response to an earlier attempt with the same grant was lost, on the wall clock; `nil` if none was, or if this isn't a
    /// refusal.
    ///
    /// The server may have replaced the refresh token then, which is the usual reason of an unexpected refusal.
    public var lostAnswerAt: Date? { details.lostAnswerAt }

    /// Whether the error has a moment on the service's own clock, which the state machine counts in.
    var hasMoment: Bool { details.retryOffset != nil || details.lostOffset != nil }

    /// The moment of the next attempt on that clock.
    var retryOffset: Duration? { details.retryOffset }

    private var details: Details { box.details }

    // Boxed: results are copied often and errors are rare.
    private let box: Box

    private final class Box: Sendable {
        let details: Details

        init(_ details: Details) { self.details = details }
    }

    private struct Details: Sendable {
        let code: Code
        let underlying: (any Error)?
        let remedy: Remedy
        var retryAt: Date?
        var retryOffset: Duration?
        /// Whether that moment had already come when it was set.
        var isDue = false
        /// Whether the token that the call was to replace isn't of the present session.
        var isAboutRefusal = false
        var lostAnswerAt: Date?
        var lostOffset: Duration?
    }

    package init(_ code: Code, underlying: (any Error)? = nil, remedy: Remedy? = nil) {
        box = Box(Details(code: code, underlying: underlying, remedy: remedy ?? Self.remedies[code] ?? .retry))
    }

    /// The error `reset` of a call whose refused token isn't of the present session.
    static var refusedElsewhere: TokenServiceError { TokenServiceError(.reset).with { $0.isAboutRefusal = true } }

    private init(_ details: Details) { box = Box(details) }

    private func with(_ change: (inout Details) -> Void) -> TokenServiceError {
        var details = details
        change(&details)
        return TokenServiceError(details)
    }

    /// Returns the same error with the next attempt at this moment of the service's clock.
    func holding(until moment: Duration) -> TokenServiceError { with { $0.retryOffset = moment } }

    /// Returns the same error with the moment at which an earlier response was lost.
    func following(lostResponseAt moment: Duration) -> TokenServiceError { with { $0.lostOffset = moment } }

    /// Returns the same error with its moments on the wall clock, given the time on both clocks.
    func dated(_ wallTime: Date?, at now: Duration) -> TokenServiceError {
        func date(_ moment: Duration) -> Date? { wallTime?.addingTimeInterval((moment - now) / .seconds(1)) }
        let next = retryOffset.map { max($0, now) }
        return with { details in
            (details.retryAt, details.isDue) = (next.flatMap(date), next == now)
            details.lostAnswerAt = details.lostOffset.flatMap(date)
        }
    }

    /// Whether the load may have been done although its response never came.
    var hasNoResponse: Bool {
        guard code == .loadFailed else { return code == .loadTimedOut }
        return (underlying as? any TokenLoadFailure)?.mayBeUnderWay ?? true
    }

    /// The remedies of the codes for which trying again doesn't help.
    private static let remedies: [Code: Remedy] = [
        .reset: .signIn, .loaderWaitsForItself: .programChange, .tooManyInvalidations: .programChange,
    ]
}

/// A service whose loader uses another service passes on the other's remedy.
extension TokenServiceError: TokenLoadFailure {
    /// The log code of the cause, or else this error's own code.
    public var logCode: String? { (underlying as? any TokenLoadFailure)?.logCode ?? code.description }
}

extension TokenServiceError: DescribedError {
    /// The problem and its remedy in a sentence; never a token.
    package var text: String {
        var text = explanation
        if let underlying { text += " Cause: \(LogText.sentence("\(underlying)"))" }
        if let lostAnswerAt {
            text +=
                " The response to an earlier attempt was lost at \(lostAnswerAt), so the server may have replaced the refresh token "
                + "then."
        }
        if let retryAt { text += details.isDue ? " The next call tries again." : " Next attempt: \(retryAt)." }
        return text
    }

    private var explanation: String {
        switch code {
        case .loadFailed where remedy == .signIn:
            "There is no valid grant. Sign in again, and pass the new token to replace(with:)."
        case .loadFailed where remedy == .signInOrRegistration:
            "The server refused the grant or the client's own credentials, without saying which. Sign in again, or correct "
                + "the credentials. The service tries again after pauses of a minute or more."
        case .loadFailed where remedy == .programChange:
            "Loading a token failed, and trying again can't help: the program must be changed."
        case .loadFailed where remedy == .clientRegistration:
            "Loading a token failed because of the client: correct its configuration or its registration at the server. The service "
                + "tries again after pauses of a minute or more."
        case .loadFailed: "Loading a token failed."
        case .loadTimedOut:
            "The load took longer than RefreshPolicy(loadTimeout:), by the service's clock. Give the loader's transport a shorter "
                + "limit, and don't let the loader wait for its own service's token, for example through a queue. If the grant is "
                + "shared, waiting for another process counts towards that time. In a test, a clock whose sleeps return at once "
                + "lets every limit pass."
        case .deadlineExceeded: "The caller's own limit passed before a token arrived. The load continues for other callers."
        case .reset where details.isAboutRefusal:
            "The refused token is of a session that has ended, or another service handed it out. Don't repeat the request for the "
                + "next user."
        case .reset: "The session of this call has ended: the user has signed out since. Don't repeat the call for the next user."
        case .tokenExpiredOnArrival: "The loaded token had already expired. Check its lifetime and the server's clock."
        case .tooManyInvalidations:
            "Refused tokens and demands for new ones have used up the 5 loads of their 30 s. If all requests are refused, check the "
                + "audience and the scope that the resource server expects."
        case .storeFailed: "The token store failed."
        case .drained:
            "The service was drained because the program is about to end, so it loads no token. Call resume() to continue."
        case .loaderWaitsForItself:
            "A loader requested a token from its own service, or from a key that shares its grant, so it would wait for itself. "
                + "Send its request without a token."
        default: code.description
        }
    }
}

/// An error whose `localizedDescription` is its description.
package protocol DescribedError: LocalizedError, Described {}

extension DescribedError {
    /// Same as `description`.
    public var errorDescription: String? { description }
}
