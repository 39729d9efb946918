import AccessTokens
import AccessTokensHTTP

extension Response {
    private var challenges: [Challenge] { header("WWW-Authenticate").map(Challenge.challenges) ?? [] }

    private var bearerChallenge: Challenge? {
        let bearer = challenges.filter { $0.hasScheme("Bearer") }
        return bearer.first { $0["error"] != nil } ?? bearer.first
    }

    /// Whether the response says that its request's token is no longer valid.
    ///
    /// It does with `invalid_token`, or without any reason: some servers answer expired tokens with an empty 401, or with a bare
    /// `Bearer` challenge. Any other reason, or a challenge for other schemes only, says nothing against the token.
    ///
    /// Source: RFC 6750 §3.1.
    var refusesToken: Bool {
        guard status == 401 else { return false }
        guard let challenge = bearerChallenge else { return challenges.isEmpty }
        return challenge["error"].map { $0 == "invalid_token" } ?? true
    }

    /// Throws an error unless the status is a success.
    func validate(hiding token: AccessToken?) throws(DataLoadingError) {
        guard !(200..<300).contains(status) else { return }
        throw failure(hiding: token)
    }

    /// Returns the error to throw for the response.
    ///
    /// - Parameter isSecondRefusal: Whether the refused token replaced another refused one.
    func failure(
        _ code: DataLoadingError.Code? = nil, isSecondRefusal: Bool = false, hiding token: AccessToken?
    ) -> DataLoadingError {
        let challenge = [401, 403].contains(status) ? bearerChallenge : nil
        let usual: DataLoadingError.Code =
            switch status {
            case 401: .unauthorized
            case 403 where challenge?["error"] == "insufficient_scope": .insufficientScope
            default: .unacceptableStatus
            }
        return DataLoadingError(
            code ?? usual, response: self, challenge: challenge, isSecondRefusal: isSecondRefusal, hiding: token)
    }
}
