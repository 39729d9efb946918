public import AccessTokens
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Why there is no proof for a request; nothing was sent.
///
/// No text of it shows a key, a proof or a nonce.
public struct DPoPError: TokenLoadFailure, Sendable {
    /// The kind of error, as a value to compare.
    package enum Code: String, Sendable {
        /// The public key can't be used, or the algorithm doesn't fit it.
        case invalidKey
        /// No proof can be made for the request's URL or method.
        case invalidRequest
        /// The signing closure returned something that isn't a signature of the algorithm.
        case invalidSignature
        /// The signing closure took longer than the limit.
        case signingTimedOut
        /// The server's nonce is too long, or has characters that a nonce can't have.
        case invalidNonce
    }

    /// The kind of error.
    package let code: Code

    private let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// A retry if signing timed out or the server's nonce can't be used; otherwise a change of the program.
    public var remedy: TokenServiceError.Remedy {
        code == .signingTimedOut || code == .invalidNonce ? .retry : .programChange
    }

    /// Always `false`, since nothing was sent.
    public var mayBeUnderWay: Bool { false }

    /// The code.
    public var logCode: String? { code.rawValue }
}

extension DPoPError: Redacted, DescribedError {
    /// The problem and its remedy.
    package var text: String {
        switch code {
        case .invalidKey: "The key can't be used for proofs: \(detail)."
        case .invalidRequest: "No proof could be made for the request, so nothing was sent: \(detail)."
        case .invalidSignature: "The signature can't be used, so nothing was sent: \(detail)."
        case .signingTimedOut: "Signing took longer than \(detail), so nothing was sent. Check the key service that signs."
        case .invalidNonce: "The server's nonce can't be used: \(detail). The server must be corrected."
        }
    }
}
