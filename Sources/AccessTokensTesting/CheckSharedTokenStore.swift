import AccessTokens
public import AccessTokensSharing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Checks what every shared store must promise, first one operation at a time, then with several callers at once.
///
/// ```swift
/// let report = try await checkSharedTokenStore([MyStore(client), MyStore(otherClient)])
/// #expect(report.failures == 0)
/// ```
///
/// Each caller loads the record and swaps it, over and over. Their history must be one that a single compare-and-swap register
/// could have given: then no swap was lost, none was undone, and no load was stale. An operation that throws is allowed, as long as
/// the history explains it: a load that failed says nothing, a swap that threw may have been done, or may be done later.
///
/// Run it in a test, on a record that nothing else uses. At its end it puts back what stood there, or an empty record, which services
/// take for none; if it is killed, a content stays that no service can read. A pass shows no more than these operations; run it while
/// you kill what the store depends on.
///
/// - Parameters:
///   - stores: Stores of one record, as different processes or hosts would have them; at least one. The callers use them in turn.
///   - callers: How many load and swap at once.
///   - rounds: How often each of them does.
/// - Returns: How much was done.
/// - Throws: ``SharedStoreViolation`` with the broken promise; or an error of the store while it had only one operation to do.
@discardableResult
@concurrent public func checkSharedTokenStore(
    _ stores: [any SharedTokenStore], callers: Int = 6, rounds: Int = 25
) async throws -> SharedStoreReport {
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

/// How much a check of a shared store has done.
public struct SharedStoreReport: Sendable, Hashable {
    /// Loads that returned.
    public internal(set) var loads = 0
    /// Swaps that replaced the record.
    public internal(set) var swaps = 0
    /// Swaps that another one stood in the way of.
    public internal(set) var conflicts = 0
    /// Operations that threw.
    public internal(set) var failures = 0
}

/// A promise that a shared store has broken.
public struct SharedStoreViolation: Error, CustomStringConvertible {
    /// Which promise, and the history that shows it if there is one.
    public let description: String
}
