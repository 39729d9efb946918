#if canImport(FoundationNetworking)
import Foundation
import FoundationNetworking
import Testing
import AccessTokensHTTP

@Suite struct `The time limits of an exchange` {
    // Foundation on Linux only supports whole seconds, and rounds 0.9 s down to none.
    @Test(arguments: [(0.9, 2), (0, 1), (60, 61), (1.5, 3), (-5, 1)])
    func `end before the session's own limit`(limit: TimeInterval, own: TimeInterval) {
        #expect(Self.ownLimit(of: limit) == own)
    }

    @Test(arguments: [TimeInterval.infinity, .nan, .greatestFiniteMagnitude])
    func `leave the session a limit that Foundation can represent`(limit: TimeInterval) {
        #expect(Self.ownLimit(of: limit) == 10 * 365 * 86_400 + 1)
    }

    private static func ownLimit(of limit: TimeInterval) -> TimeInterval {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = limit
        _ = TimeLimits(takingOver: configuration)
        return configuration.timeoutIntervalForRequest
    }
}
#endif
