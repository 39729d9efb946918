import AccessTokens
import AccessTokensSharing
import Foundation

/// The grant that the processes share: its tokens, its store, and how long things may take.
enum FleetGrant {
    /// How long each token is good for.
    static let lifetime = Duration.seconds(1)
    /// How long the server takes from the exchange to its answer: the time in which a death loses a session.
    static let latency = 0.05
    static let policy = RefreshPolicy(loadTimeout: .seconds(2))
    static let sharing = TokenSharing(transportLimit: .seconds(1))
    /// How long the mark of a silent process is respected: twice what an exchange may take.
    static let doubt = Duration.seconds(6)

    private static let accessPrefix = "race-lab-access-"
    private static let refreshPrefix = "race-lab-refresh-"

    static func token(_ number: Int) -> AccessToken {
        AccessToken(accessPrefix + "\(number)", lifetime: lifetime, refreshToken: refreshPrefix + "\(number)")
    }

    static func number(ofAccess text: String) -> Int? { number(in: text, after: accessPrefix) }
    static func number(ofRefresh text: String) -> Int? { number(in: text, after: refreshPrefix) }

    private static func number(in text: String, after prefix: String) -> Int? {
        text.hasPrefix(prefix) ? Int(text.dropFirst(prefix.count)) : nil
    }

    /// Throws if there is a record that the lab hasn't written: it may be the only copy of a real grant.
    static func requireOwn(_ record: SharedRecord?) throws(UsageError) {
        guard let record, !String(decoding: record.bytes, as: UTF8.self).contains(refreshPrefix) else { return }
        throw UsageError("the store has a record that is not race-lab's: give --processes a store of its own")
    }
}

/// The loader of a service that only signs in.
struct NoLoader: TokenLoader {
    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { throw CancellationError() }
}
