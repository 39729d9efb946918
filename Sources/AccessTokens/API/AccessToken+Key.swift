extension AccessToken {
    /// Whether the key with this thumbprint can prove requests with the token, or they need no proof.
    package func isBound(onlyTo keyThumbprint: String?) -> Bool { self.keyThumbprint ?? keyThumbprint == keyThumbprint }

    /// Returns the token, or an expired copy if it is bound to another key: no caller gets it, but its grant is kept.
    ///
    /// The grant may still be good, and a sign-out has to revoke it.
    func usable(with keyThumbprint: String?) -> AccessToken {
        guard !isBound(onlyTo: keyThumbprint) else { return self }
        return AccessToken(
            value, tokenType: tokenType, lifetime: .zero, scope: scope, refreshToken: refreshToken,
            refreshTokenExpiration: refreshTokenExpiration, keyThumbprint: self.keyThumbprint)
    }
}
