#if canImport(FoundationNetworking)
import Foundation
import FoundationNetworking
import Testing

@testable import DataLoading

struct SessionLimitsTests {
    // Foundation on Linux knows whole seconds only, and takes nine tenths of one for none.
    @Test(arguments: [(0.9, 2), (0, 1), (60, 61), (1.5, 3)])
    func `The session's own limit is behind ours`(limit: TimeInterval, own: TimeInterval) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = limit
        _ = SessionLimits(takingOver: configuration)
        #expect(configuration.timeoutIntervalForRequest == own)
    }
}
#endif
