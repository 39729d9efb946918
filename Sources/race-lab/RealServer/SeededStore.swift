import AccessTokens
import Foundation

/// A store that, while it is empty, has a refresh token from elsewhere.
///
/// That one is written nowhere: if the server refuses it, the store is still empty, and the next run can bring another.
struct SeededStore: TokenStore {
    let base: any TokenStore
    let refreshToken: String?

    /// Returns what is stored, or an expired token that has the refresh token.
    @concurrent func load() async throws -> StoredToken? {
        if let stored = try await base.load() { return stored }
        // It has expired, so its age does not matter.
        return refreshToken.map { StoredToken(AccessToken("", lifetime: .zero, refreshToken: $0), received: Date()) }
    }

    /// Makes sure that the store can be written to: else the first load would use the refresh token up for nothing.
    ///
    /// - Returns: Whether something is stored.
    func prepare() async throws -> Bool {
        if let stored = try await base.load() {
            guard stored.token.refreshToken?.isEmpty == false else {
                throw UsageError("--store: the token that is there has no refresh token; give another file")
            }
            try await base.save(stored)
            return true
        }
        guard let seed = try await load() else {
            let advice = Credentials.Secret.refreshToken.advice
            throw UsageError("--store: nothing is there yet, and REFRESH_TOKEN is not set: \(advice)")
        }
        try await base.save(seed)
        try await base.remove()
        return false
    }

    @concurrent func save(_ token: StoredToken) async throws { try await base.save(token) }

    @concurrent func remove() async throws { try await base.remove() }
}
