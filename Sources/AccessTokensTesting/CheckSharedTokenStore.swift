import AccessTokens
public import AccessTokensSharing
public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks every promise of a shared store, first one operation at a time, then with several callers at once.
///
/// ```swift
/// let report = try await checkSharedTokenStore([MyStore(client), MyStore(otherClient)])
/// #expect(report.failures == 0)
/// ```
///
/// Each caller repeatedly loads the record and swaps it. Their history must be one that a single compare-and-swap register could
/// have produced: then no swap was lost or undone, and no load was stale. An operation may throw, as long as the history explains
/// it: a failed load proves nothing, and a swap that threw may have taken effect, or may do so later.
///
/// Run it in a test, on a record that nothing else uses. At its end it restores the record's previous content, or writes an empty
/// record, which services treat as none. If it is killed, the record is left unreadable for services. Give the test a time limit,
/// since the check waits for each load and swap to return. A pass covers only the operations that ran; run the check while you
/// kill what the store depends on.
///
/// - Parameters:
///   - stores: Stores of one record, as different processes or hosts would have them; at least one. The callers take turns with
///     them.
///   - callers: How many callers load and swap at once.
///   - rounds: How often each of them does so.
/// - Returns: How many loads returned, and how many swaps replaced the record or conflicted with another one; and how many
///   operations threw.
/// - Throws: ``SharedStoreViolation`` with the broken promise; or an error of the store during the single operations.
@discardableResult
@concurrent public func checkSharedTokenStore(
    _ stores: [any SharedTokenStore], callers: Int = 6, rounds: Int = 25
) async throws -> (loads: Int, swaps: Int, conflicts: Int, failures: Int) {
    let trial = try await SharedStoreTrial(stores), before = try await stores[0].load()
    do {
        try await trial.runOneAtATime()
        let report = try await trial.run(callers: callers) { $0 < rounds }
        await trial.putBack(before)
        return report
    } catch {
        await trial.putBack(before)
        throw error
    }
}

/// The number of operations that a check of a shared store performed.
package typealias SharedStoreReport = (loads: Int, swaps: Int, conflicts: Int, failures: Int)

/// A promise that a shared store broke.
public struct SharedStoreViolation: Error, Described {
    /// The broken promise, and the history that shows it if there is one.
    package let text: String
}
