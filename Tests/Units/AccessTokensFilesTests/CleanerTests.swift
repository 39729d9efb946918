import AccessTokensSharedFiles
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("A cleaner that removes files whose names begin with a dot") struct CleanerTests {
    @Test(arguments: [false, true])
    func `may cost a swap, but loses or undoes none`(removesTemporaries: Bool) async throws {
        let place = try Place(), isDone = Log<Void>()
        let stores = (0..<4).map { _ in SharedFileTokenStore(path: place.path) }
        let trial = try await SharedStoreTrial(stores)
        Thread.detachNewThread {
            var random = SplitMix64(seed: 1)
            while isDone.entries.isEmpty {
                // In everyday runs it yields the processor to other tests between its runs.
                if !isThorough { usleep(1_000) }
                for name in (try? place.names) ?? [] where name.hasPrefix(".") {
                    // Leave most of them; otherwise no swap would succeed.
                    if name.hasSuffix("lock") || removesTemporaries && random.below(20) == 0 {
                        try? FileManager.default.removeItem(atPath: place.directory + "/" + name)
                    }
                }
            }
        }
        defer { isDone.append(()) }
        let rounds = Int.everyday(15, thorough: 60)
        let report = try await trial.run(callers: 6) { $0 < rounds }
        #expect(report.swaps > 0)
        #expect(removesTemporaries || report.failures == 0)
    }
}
