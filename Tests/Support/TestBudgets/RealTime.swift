public import Testing

/// Runs the tests of a suite at a high priority, on threads that hundreds of computing tests don't occupy.
///
/// For services with the default clock: on a slow machine a load would wait behind those tests for longer than it may take.
public struct RealTime: SuiteTrait, TestTrait, TestScoping {
    /// Suites pass the trait on to their tests.
    public var isRecursive: Bool { true }

    /// Runs a test at a high priority.
    @concurrent public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        // Not a child task: that would have its parent's priority (Swift 6.3). The task ends before this function returns.
        try await withoutActuallyEscaping(function) { function in
            let test = Task(priority: .high) { try await function() }
            try await withTaskCancellationHandler {
                try await test.value
            } onCancel: {
                test.cancel()
            }
        }
    }
}

extension Trait where Self == RealTime {
    /// For tests of services with the default clock.
    public static var inRealTime: Self { RealTime() }
}
