import AccessTokens
import AccessTokensHTTP

extension Response {
    var answer: TransportResponse { TransportResponse(status: status, headers: headers, body: body) }

    /// The challenge for a token's scheme, preferably one with an error.
    func challenge(for token: AccessToken?) -> AuthenticationChallenge? {
        let scheme = token?.isOfDPoP ?? false ? "DPoP" : "Bearer"
        let fitting = answer.challenges.filter { $0.hasScheme(scheme) }
        return fitting.first { $0["error"] != nil } ?? fitting.first
    }

    /// Whether the response means that its request's token is no longer valid.
    func isRefusal(of token: AccessToken, in usage: TokenUsage) -> Bool {
        usage.isRefused(by: answer, tokenType: token.tokenType)
    }

    /// Throws an error unless the status is a success.
    func validate(hiding carried: CarriedToken?) throws(DataLoadingError) {
        guard !(200..<300).contains(status) else { return }
        throw failure(hiding: carried)
    }

    /// Returns the error to throw for the response.
    ///
    /// - Parameter isSecondRefusal: Whether the refused token replaced another refused one.
    func failure(
        _ code: DataLoadingError.Code? = nil, detail: String? = nil, underlying: (any Error)? = nil,
        isSecondRefusal: Bool = false, hiding carried: CarriedToken?
    ) -> DataLoadingError {
        let challenge = [400, 401, 403].contains(status) ? challenge(for: carried?.token) : nil
        let usual: DataLoadingError.Code =
            switch status {
            case 401: .unauthorized
            case 403 where challenge?["error"] == "insufficient_scope": .insufficientScope
            default: .unacceptableStatus
            }
        var detail = detail
        if challenge?["error"] == "invalid_dpop_proof", let proof = carried?.proof {
            detail = ProofClock.note(issued: proof.issued, date: header("Date"))
        }
        return DataLoadingError(
            code ?? usual, detail: detail, response: self, underlying: underlying, challenge: challenge,
            isSecondRefusal: isSecondRefusal, hiding: carried)
    }
}
