extension AccessToken {
    /// Whether requests with it could be proven by that key, or need no proof at all.
    package func isBound(onlyTo keyThumbprint: String?) -> Bool { self.keyThumbprint ?? keyThumbprint == keyThumbprint }

    /// The token as a service keeps it if its key is another: expired, so that no caller gets it, with its grant.
    ///
    /// The grant is kept since it may still be good, and is to be revoked at a sign-out in any case.
    func usable(with keyThumbprint: String?) -> AccessToken {
        guard !isBound(onlyTo: keyThumbprint) else { return self }
        return AccessToken(
            value, tokenType: tokenType, lifetime: .zero, scope: scope, refreshToken: refreshToken,
            refreshTokenExpiration: refreshTokenExpiration, keyThumbprint: self.keyThumbprint)
    }
}
