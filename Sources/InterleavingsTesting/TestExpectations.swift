import Interleavings
import Testing
import TokenServiceConcurrency

/// The expectations of Swift Testing.
///
/// `Expectations.linked` finds it by its name.
struct TestExpectations: LinkedExpectations {
    static func failSchedules(_ body: @escaping @Sendable () async throws -> Void) async throws {
        guard let test = Test.current else { return try await body() }
        let seen = Lock<Set<String>>([])
        let issues: IssueHandlingTrait = .compactMapIssues { issue in
            guard let simulation = Simulation.current else { return issue }
            #if compiler(>=6.3)
            // Known issues and warnings fail nothing; each is reported once, not for each schedule.
            guard issue.isFailure else {
                return seen.withLock { $0.insert("\(issue), \(issue.sourceLocation, default: "")").inserted } ? issue : nil
            }
            #endif
            simulation.fail(reason(of: issue), at: issue.sourceLocation.map { "\($0.fileID):\($0.line)" } ?? "")
            return nil
        }
        try await issues.provideScope(for: test, testCase: .current, performing: body)
    }

    /// Returns an expectation's comment and its expression with the values, without the severity of an issue.
    private static func reason(of issue: Issue) -> String {
        (issue.comments.map(\.rawValue) + ["\(issue.kind)"]).joined(separator: ": ")
    }
}
