import AccessTokens
import Foundation
import AccessTokensHTTP

/// The token that a message carries and, if the token is bound to a key, the proof of the key.
struct CarriedToken: Sendable {
    let token: AccessToken
    let usage: TokenUsage
    var maker: (any TokenProof)?
    var proof: RequestProof?

    /// The secrets of the earlier request that was refused because of its nonce.
    var earlier: [String] = []

    /// The secrets, which no text may show.
    var secrets: [String] { earlier + [token.value] + (proof?.secrets ?? []) }

    /// Source: RFC 6750 §2.1; RFC 9449 §7.1.
    var headers: [String: String] {
        guard let proof else { return usage.headers(carrying: token.value) }
        return proof.headers.merging(["Authorization": "DPoP \(token.value)"]) { $1 }
    }

    func url(for url: URL) -> URL { proof == nil ? usage.url(url, carrying: token.value) : url }

    /// Whether a URL shows the token in any way, as a redirect's target may, if the URL carries it.
    func isShown(in url: URL) -> Bool {
        guard case .query = usage.place else { return false }
        var text = url.absoluteString
        // A URL inside a query is encoded twice, and one inside that thrice.
        for _ in 0..<4 {
            if text.contains(token.value) { return true }
            text = text.removingPercentEncoding ?? text
        }
        return false
    }
}

extension AccessToken {
    /// Whether it is bound to a key.
    var isOfDPoP: Bool { tokenType.lowercased() == "dpop" }
}

/// A response's verdict on the proof of its request.
struct ProofAnswer {
    private let response: Response
    private let carried: CarriedToken
    private let proof: RequestProof
    private let nonce: Result<String?, any Error>

    /// Remembers the response's nonce; fails with `nil` if the request had no proof.
    init?(_ response: Response, to carried: CarriedToken?, from url: URL) {
        guard let carried, let maker = carried.maker, let proof = carried.proof else { return nil }
        self.response = response
        self.carried = carried
        self.proof = proof
        // An invalid nonce matters only if the server demands one.
        nonce = Result { try maker.nonce(in: response.headers, from: url) }
    }

    /// Whether the server has refused the request only because of its proof's nonce.
    ///
    /// Some servers do so with status 400. Source: RFC 9449 §9.
    var demandsNonce: Bool {
        (response.status == 401 || response.status == 400) && response.challenge(for: carried.token)?["error"] == "use_dpop_nonce"
    }

    /// Returns the nonce with which to send the request once more.
    ///
    /// A server that accepts only its newest nonce refuses all but one of several requests that arrive at once, so a request is
    /// repeated twice.
    ///
    /// - Parameters:
    ///   - isLast: Whether the request was already repeated as often as it may be.
    ///   - canRepeat: Whether its body can be sent again.
    /// - Throws: ``DataLoadingError``.
    func nonce(isLast: Bool, canRepeat: Bool) throws(DataLoadingError) -> String {
        func failure(_ problem: String) -> DataLoadingError {
            response.failure(.unauthorized, detail: problem, hiding: carried)
        }
        let nonce: String?
        do {
            nonce = try self.nonce.get()
        } catch {
            // The text of any other error may contain a secret.
            throw failure(
                error is any TokenLoadFailure ? String("\(error)".dropLast()) : "\(type(of: error)) rejected its nonce")
        }
        guard let nonce else { throw failure("it demands a nonce in the proof but sent none") }
        guard !isLast, nonce != proof.nonce else { throw failure("it refused the nonce that it had sent") }
        guard canRepeat else { throw response.failure(.bodyNotReplayable, hiding: carried) }
        return nonce
    }
}
