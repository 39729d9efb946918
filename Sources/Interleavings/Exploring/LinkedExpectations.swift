/// A testing library's expectations, in programs that link the module for that library.
package protocol LinkedExpectations: SendableMetatype {
    /// Runs a body in which a scenario's failed expectation fails the schedule instead of the test.
    static func failSchedules(_ body: @escaping @Sendable () async throws -> Void) async throws
}

/// Expectations in scenarios.
enum Expectations {
    /// The expectations of this program; `nil`: it doesn't link `InterleavingsTesting`.
    ///
    /// The runtime looks their type up by its mangled name, as for `Driving.linked`.
    private static let linked = _typeByName("20InterleavingsTesting16TestExpectationsV") as? any LinkedExpectations.Type

    /// Runs a body in which a scenario's failed expectation fails the schedule, if the program supports that.
    static func failSchedules(_ body: @escaping @Sendable () async throws -> Void) async throws {
        guard let linked else { return try await body() }
        try await linked.failSchedules(body)
    }
}
