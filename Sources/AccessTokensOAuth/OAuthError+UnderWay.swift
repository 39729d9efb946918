import AccessTokens
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension OAuthError {
    /// Whether the request may still be under way: not if it was never sent, or if the server has answered.
    ///
    /// An answer with the status 502 or 504 comes from a gateway, behind which the server may still be working.
    public var mayBeUnderWay: Bool {
        switch code {
        case .timedOut: return true
        case .credentialsUnavailable, .signInExpired: return false
        case .connectionFailed: return !((underlying as? URLError).map { Self.unsent.contains($0.code) } ?? false)
        default: return remedy == .retry && retryAfter == nil && (status == 502 || status == 504)
        }
    }

    /// There was no connection to send anything over.
    private static let unsent: [URLError.Code] = [
        .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet,
    ]
}
