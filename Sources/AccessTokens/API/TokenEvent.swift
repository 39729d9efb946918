public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Something that happened in a ``TokenService``, for logs and metrics.
///
/// Each load whose start is announced is also announced to end, by an event with its number: ``Name/loadSucceeded``,
/// ``Name/loadFailed``, ``Name/refreshFailed``, ``Name/restored`` or ``Name/loadDropped``. Events of loads that a fence
/// (``TokenService/reset()``, ``TokenService/replace(with:)``) cut off are not sent: ``Name/reset`` and ``Name/replaced`` end the
/// loads of all earlier generations. If the result of a load that timed out arrives late, its end may be announced a second time,
/// by any of these events.
public struct TokenEvent: Sendable, Described {
    /// The kind of event, as a value to compare and to name a metric after.
    public struct Name: Sendable, Hashable, Described {
        /// A load started because a caller waits for it; with an error: the store couldn't save the refresh token that it spends.
        public static let loadStarted = Name(text: "loadStarted")
        /// A load started ahead of expiry, while callers get the current token.
        public static let refreshStarted = Name(text: "refreshStarted")
        /// A load returned a token, and its callers have it.
        public static let loadSucceeded = Name(text: "loadSucceeded")
        /// A load failed or timed out; ``TokenEvent/error`` says why.
        public static let loadFailed = Name(text: "loadFailed")
        /// A load failed or timed out, and callers keep getting the current token: it was a refresh ahead, or a load inside the
        /// token's leeway.
        public static let refreshFailed = Name(text: "refreshFailed")
        /// A load or a refresh ahead ended without a token and without an error: no caller waited for it any longer, or another
        /// service was already working on the shared grant.
        public static let loadDropped = Name(text: "loadDropped")
        /// The current token was refused by a resource server and dropped; with an error: it stays in use, since refusals may
        /// cause no load at the moment, and further refusals of it are not announced.
        public static let invalidated = Name(text: "invalidated")
        /// The program gave the service a new token.
        public static let replaced = Name(text: "replaced")
        /// Callers get the store's token, from an earlier run or, if the grant is shared, from another service.
        public static let restored = Name(text: "restored")
        /// An operation of the store failed or took too long, without ending a load, or another service has changed the store.
        ///
        /// ``TokenEvent/error`` says which. The session counts as another's in the last case, and a ``reset`` follows.
        public static let storeFailed = Name(text: "storeFailed")
        /// The service was reset (signed out).
        public static let reset = Name(text: "reset")

        package let text: String
    }

    /// The kind of event.
    public let name: Name

    /// The number of the last fence (a reset or a replacement) before it, so that listeners can tell sessions apart; 0: there
    /// was none.
    ///
    /// It grows with each fence, usually by one.
    public private(set) var generation: Int

    /// The number of the load that the event is about, counted from 1 in this service; `nil` if it isn't about a load.
    public let load: Int?

    /// How many callers joined that load, its first one included.
    public let callers: Int

    /// The error, if something failed; without secrets.
    public private(set) var error: TokenServiceError?

    func mapError(_ transform: (TokenServiceError) -> TokenServiceError) -> TokenEvent {
        var event = self
        event.error = error.map(transform)
        return event
    }

    package func with(generation: Int) -> TokenEvent {
        var event = self
        event.generation = generation
        return event
    }

    /// One line for a log, with the error's code, cause and remedy, and when an earlier response was lost, if one was; it never
    /// contains a token.
    package var text: String {
        var text = "\(name) generation=\(generation)"
        if let load { text += " load=\(load) callers=\(callers)" }
        if let error {
            text += " error=\(error.code)"
            if let cause = error.cause { text += " cause=\(cause)" }
            text += " remedy=\(error.remedy)"
            if let lost = error.lostAnswerAt { text += " lostAnswer=\(lost.formatted(.iso8601))" }
        }
        return text
    }
}

/// Makes foreign text safe for a line of a log: it can't begin another line, or another field.
package enum LogText {
    /// The longest text that is shown.
    static let limit = 200

    /// Returns the text with everything but printable ASCII escaped, and cut if it is long.
    static func line(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars.prefix(limit) {
            let isPlain = (0x20...0x7E).contains(scalar.value) && scalar != "\\"
            line += isPlain ? String(scalar) : scalar.escaped(asASCII: true)
        }
        return text.unicodeScalars.count > limit ? line + "…" : line
    }

    /// Returns the text, in any language and of any length, as a sentence with its end mark.
    ///
    /// Characters that could begin another line are escaped.
    static func sentence(_ text: String) -> String {
        let sentence = text.unicodeScalars.reduce(into: "") { sentence, scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: sentence += scalar.escaped(asASCII: true)
            default: sentence.unicodeScalars.append(scalar)
            }
        }
        let isEnded = sentence.last.map { ".!?…".contains($0) } ?? true
        return isEnded ? sentence : sentence + "."
    }

    /// The same as ``line(_:)``, as the value of a field: with `_` for spaces and for `=`.
    package static func field(_ text: String) -> String {
        String(line(text).map { $0 == " " || $0 == "=" ? "_" : $0 })
    }
}

extension TokenServiceError {
    /// The cause's name for logs: its log code, or else the name of its type; `nil` if there is no cause.
    var cause: String? {
        guard let underlying else { return nil }
        let code = (underlying as? any TokenLoadFailure)?.logCode
        return LogText.field(code ?? "\(type(of: underlying))")
    }
}
