import AccessTokens
import AccessTokensHTTP

extension Response {
    private var challenges: [Challenge] { header("WWW-Authenticate").map(Challenge.challenges) ?? [] }

    /// The challenge for a token's scheme, preferably one with an error.
    func challenge(for token: AccessToken?) -> Challenge? {
        let scheme = token?.isOfDPoP ?? false ? "DPoP" : "Bearer"
        let fitting = challenges.filter { $0.hasScheme(scheme) }
        return fitting.first { $0["error"] != nil } ?? fitting.first
    }

    /// Whether the response means that its request's token is no longer valid.
    ///
    /// It does if the error is `invalid_token` or if there is none: some servers answer expired tokens with an empty 401, or with
    /// a bare challenge. Any other error doesn't concern the token's validity, nor do challenges only for other schemes.
    ///
    /// Source: RFC 6750 §3.1; RFC 9449 §7.1.
    func refuses(_ token: AccessToken) -> Bool {
        guard status == 401 else { return false }
        guard let challenge = challenge(for: token) else { return challenges.isEmpty }
        return challenge["error"].map { $0 == "invalid_token" } ?? true
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
