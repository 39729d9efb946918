import AccessTokens
import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Why an operation of an ``EtcdTokenStore`` failed.
///
/// The server's text is cut to one short line, without the secrets that it may have echoed.
public struct EtcdError: Error, Sendable {
    /// The kind of error, as a value to compare.
    package enum Code: String, Sendable {
        /// The store's key, endpoints or the given revision are invalid; nothing was sent.
        case invalidConfiguration
        /// No connection could be made; nothing was sent.
        case unreachable
        /// The connection ended before the answer was complete.
        case connectionLost
        /// The answer was not complete within the time limit, as when a majority of the members can't be reached.
        case timedOut
        /// etcd answered that it can't serve the request now: no leader, no majority, too many requests.
        case unavailable
        /// etcd did not accept the user: the name or password is wrong, or one is needed, or none is expected.
        case authenticationFailed
        /// The user is not allowed to read or write the key.
        case permissionDenied
        /// etcd, or something in front of it, refused the request for another reason.
        case refused
        /// The answer can't be used: it is not JSON, is truncated or too long, has missing members or wrong types, or is about
        /// another key.
        case unreadableAnswer
    }

    /// The kind of error.
    package let code: Code

    /// The endpoint where it went wrong, such as `https://etcd-1.example:2379`; `nil` if none was asked.
    package internal(set) var endpoint: String?

    /// The HTTP status code; `nil` if there was no answer.
    package internal(set) var status: Int?

    /// Whether the swap that threw this may have succeeded; always `false` for a load.
    ///
    /// The service then reads the record again, and recognises its own.
    public internal(set) var isOutcomeUnknown = false

    /// The transport's own error, if it was one.
    package internal(set) var underlying: (any Error)?

    /// The exact problem, in our own words or in the server's, made safe to print.
    var detail: String

    init(_ code: Code, _ detail: String, status: Int? = nil, underlying: (any Error)? = nil) {
        self.code = code
        self.detail = detail
        self.status = status
        self.underlying = underlying
    }

    /// The error of a transport.
    init(_ error: TransportError, of request: TransportRequest) {
        switch error {
        case .notSent(let reason, let underlying): self.init(.unreachable, reason, underlying: underlying)
        case .connectionLost(let reason, let underlying): self.init(.connectionLost, reason, underlying: underlying)
        case .timedOut(let underlying): self.init(.timedOut, "\(request.timeLimit.shown)", underlying: underlying)
        case .tooLong: self.init(.unreadableAnswer, "it is longer than \(request.maximumBodySize) bytes")
        case .invalidConfiguration(let problem): self.init(.invalidConfiguration, problem)
        }
    }

    /// Whether another endpoint may succeed.
    var isOfOneEndpoint: Bool {
        [.unreachable, .connectionLost, .timedOut, .unavailable, .unreadableAnswer].contains(code)
    }
}

extension EtcdError: Redacted, DescribedError {
    /// The problem and its remedy, without a record, a password or a token.
    package var text: String {
        let at = endpoint.map { " at \($0)" } ?? ""
        let swap = isOutcomeUnknown ? " The record may have been replaced: read it again." : ""
        return switch code {
        case .invalidConfiguration: "The etcd store's configuration is invalid: \(detail)."
        case .unreachable: "etcd\(at) could not be reached: \(detail). Check the endpoint, and that etcd is running there."
        case .connectionLost:
            "The connection to etcd\(at) ended before the answer was complete: \(detail).\(swap) Try again later."
        case .timedOut:
            "etcd\(at) did not answer within \(detail).\(swap) Try again later; check that a majority of its members is running."
        case .unavailable:
            "etcd\(at) can't serve the request now: \(detail).\(swap) Try again later; check that a majority of its members is "
                + "running."
        case .authenticationFailed: "etcd\(at) did not accept the user: \(detail). Check the store's user and password."
        case .permissionDenied:
            "etcd\(at) denied access: \(detail). Give the user a role that may read and write the store's key."
        case .unreadableAnswer:
            "The answer of etcd\(at) can't be used: \(detail).\(swap) Check that the endpoint is an etcd of version 3.4 or newer."
        case .refused: "etcd\(at) refused the request: \(detail).\(swap) Check the endpoint, the record's size and etcd's alarms."
        }
    }
}
