import AccessTokens

extension SimulatedAuthorizationServer {
    /// The tokens that the server has issued, and their state: a pure value that takes the time as a parameter.
    struct Ledger: Sendable {
        private struct Session: Sendable {
            var latest: AccessToken?
            /// Whether it has ended for good; then none of its tokens is valid.
            var isEnded = false
        }

        private struct Access: Sendable {
            let session: Int
            let issued: Duration
            var isRevoked = false
        }

        private struct Grant: Sendable {
            let session: Int
            var isUsed = false
        }

        /// The session that all client-credentials loads share.
        private static let clientSession = 0

        private let tokenLifetime: Duration?
        private let keepsOneTokenValid: Bool
        private let rotatesRefreshTokens: Bool
        private var sessions = [Session()]
        private var accessTokens: [String: Access] = [:]
        private var refreshTokens: [String: Grant] = [:]

        var answersRepeatedToken = false
        var tokensIssued: Int { accessTokens.count }
        private(set) var refreshes = 0
        private(set) var tokensRevokedWhileValid = 0
        private(set) var reuseDetected = 0

        init(tokenLifetime: Duration?, keepsOneTokenValid: Bool, rotatesRefreshTokens: Bool) {
            self.tokenLifetime = tokenLifetime
            self.keepsOneTokenValid = keepsOneTokenValid
            self.rotatesRefreshTokens = rotatesRefreshTokens
        }

        mutating func signIn(at now: Duration) -> AccessToken {
            sessions.append(Session())
            let session = sessions.count - 1
            return issue(in: session, refreshToken: grant(in: session), at: now)
        }

        mutating func exchange(_ previous: AccessToken?, at now: Duration) -> Result<AccessToken, ScriptedFailure> {
            guard let refreshToken = previous?.refreshToken else {
                return .success(repeated(in: Self.clientSession) ?? issue(in: Self.clientSession, refreshToken: nil, at: now))
            }
            guard let grant = refreshTokens[refreshToken], !sessions[grant.session].isEnded else {
                return .failure(.grantRefused)
            }
            if grant.isUsed {
                reuseDetected += 1
                sessions[grant.session].isEnded = true
                return .failure(.grantRefused)
            }
            if let token = repeated(in: grant.session) { return .success(token) }
            refreshes += 1
            guard rotatesRefreshTokens else {
                return .success(issue(in: grant.session, refreshToken: refreshToken, at: now))
            }
            refreshTokens[refreshToken]?.isUsed = true
            return .success(issue(in: grant.session, refreshToken: self.grant(in: grant.session), at: now))
        }

        func isValid(_ value: String, at now: Duration) -> Bool {
            guard let token = accessTokens[value], !token.isRevoked, !sessions[token.session].isEnded else { return false }
            guard let tokenLifetime else { return true }
            return now - token.issued < tokenLifetime
        }

        mutating func revoke(_ value: String) {
            accessTokens[value]?.isRevoked = true
        }

        mutating func revokeAll() {
            for value in accessTokens.keys { revoke(value) }
            for session in sessions.indices where session != Self.clientSession { sessions[session].isEnded = true }
        }

        private func repeated(in session: Int) -> AccessToken? {
            answersRepeatedToken ? sessions[session].latest : nil
        }

        private mutating func issue(in session: Int, refreshToken: String?, at now: Duration) -> AccessToken {
            if keepsOneTokenValid, let displaced = sessions[session].latest?.value {
                if isValid(displaced, at: now) { tokensRevokedWhileValid += 1 }
                revoke(displaced)
            }
            let token = AccessToken(
                "access-\(accessTokens.count + 1)", lifetime: tokenLifetime, refreshToken: refreshToken)
            accessTokens[token.value] = Access(session: session, issued: now)
            sessions[session].latest = token
            return token
        }

        private mutating func grant(in session: Int) -> String {
            let refreshToken = "refresh-\(refreshTokens.count + 1)"
            refreshTokens[refreshToken] = Grant(session: session)
            return refreshToken
        }
    }
}
