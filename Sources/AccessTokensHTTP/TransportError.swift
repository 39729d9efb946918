public import TokenServiceConcurrency

#if URLSession
public import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif
#else
public import FoundationEssentials
#endif

/// Why a ``TokenTransport`` returned no response.
///
/// Its texts name hosts and causes, never a secret. Clients and stores turn it into their own errors.
public enum TransportError: Error, Sendable {
    /// Nothing of the request was sent: the name can't be resolved, no connection could be made, or its handshake failed.
    case notSent(_ reason: String, underlying: (any Error)? = nil)
    /// The connection ended before the response was complete; the request may have been executed.
    case connectionLost(_ reason: String, underlying: (any Error)? = nil)
    /// The response was not complete within the time limit; the request may have been executed.
    case timedOut(underlying: (any Error)? = nil)
    /// The response's body is longer than the request's ``TransportRequest/maximumBodySize``.
    case tooLong
    /// The transport can't send such a request at all; nothing was sent.
    case invalidConfiguration(_ problem: String)
}

extension TransportError: Redacted, LocalizedError {
    /// Same as `description`.
    public var errorDescription: String? { description }

    /// The kind of error, and whether the request may have been executed.
    package var text: String {
        switch self {
        case .notSent(let reason, _): "The server could not be reached, so nothing was sent: \(reason)."
        case .connectionLost(let reason, _):
            "The connection ended before the response was complete: \(reason). The request may have been executed."
        case .timedOut: "The response was not complete within the time limit. The request may have been executed."
        case .tooLong: "The response is longer than the request's maximumBodySize."
        case .invalidConfiguration(let problem): "The transport can't send this: \(problem). Nothing was sent."
        }
    }
}

extension TransportError {
    /// Creates an error from a connection's error; only `URLSession`'s errors show whether the request was sent.
    ///
    /// `secureConnectionFailed` and `clientCertificateRejected` don't show it: with TLS 1.3 either may occur after the request
    /// was sent.
    ///
    /// - Parameter reason: The error's text, made safe.
    package init(_ error: any Error, saying reason: String) {
        #if URLSession
        let unsent: [URLError.Code] = [
            .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet, .serverCertificateUntrusted,
            .serverCertificateHasBadDate, .serverCertificateNotYetValid, .serverCertificateHasUnknownRoot,
        ]
        if let code = (error as? URLError)?.code, unsent.contains(code) {
            self = .notSent(reason, underlying: error)
            return
        }
        #endif
        self = .connectionLost(reason, underlying: error)
    }
}
