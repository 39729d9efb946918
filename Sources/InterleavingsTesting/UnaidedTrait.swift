import Interleavings
package import Testing

/// Explores in the preferred mode like a program that doesn't link `InterleavingsEverything`.
///
/// So a program that links the module can test what the documentation says about others.
package struct UnaidedTrait: TestTrait, SuiteTrait, TestScoping {
    /// Suites pass the trait on to their tests.
    package let isRecursive = true

    /// Runs a test with the doors shut.
    @concurrent package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await Overrides.unaided { try await function() }
    }
}

extension Trait where Self == UnaidedTrait {
    package static var unaided: Self { UnaidedTrait() }
}
