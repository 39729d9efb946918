/// What a check of a history found.
public enum LinearizabilityVerdict: Sendable {
    /// There is an order in which every answer is right.
    case linearizable
    /// There is none; the value shows why.
    case notLinearizable(NotLinearizable)
    /// The step limit was reached before either was known.
    case undecided(LinearizabilityUndecided)
}

/// A history that has no order: what its callers got can't come from an object that serves one after another.
public struct NotLinearizable: Error, CustomStringConvertible {
    // Written when it is read: whoever looks for the shortest of many failing histories reads one of them.
    private let report: @Sendable () -> String

    init(report: @escaping @Sendable () -> String) {
        self.report = report
    }

    /// The operations in a timeline, the order that gets furthest, and why none of the others can come next.
    public var description: String { report() }
}

/// A check that gave up: the history may have an order or not.
///
/// Raise the step limit, record fewer operations that are open at once, or give objects that don't influence each other a
/// history each. Calls that never return are the costliest: each may take effect at any later moment.
public struct LinearizabilityUndecided: Error, CustomStringConvertible {
    /// How many steps were allowed.
    public let stepLimit: Int
    /// How many operations the history holds.
    public let operations: Int
    /// The most operations that were open at once.
    public let concurrency: Int

    /// The numbers, and what to do.
    public var description: String {
        """
        Undecided: the search for an order of \(operations) operations, up to \(concurrency) of them open at once, was ended \
        after \(stepLimit) steps. Raise stepLimit, record fewer operations that are open at once, or give objects that don't \
        influence each other a history each.
        """
    }
}
