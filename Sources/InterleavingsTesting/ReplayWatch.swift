import Interleavings
import Synchronization
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Fails a test run that should replay a schedule if its filter matched no test that explores.
///
/// Swift Testing creates every test's traits before it filters the tests. So a trait begins the watch, and a check at the end of
/// the process finds out whether a test has replayed the schedule.
enum ReplayWatch {
    private static let hasReplayed = Atomic(false)

    /// Begins the watch, once.
    ///
    /// Not if tests are only listed, nor in an exit test's process, which doesn't run a whole test.
    static let hasBegun: Bool = {
        let variables = ProcessInfo.processInfo.environment
        guard variables["INTERLEAVINGS_REPLAY"] != nil, variables["SWT_EXIT_TEST_ID"] == nil,
            ProcessInfo.processInfo.arguments.contains("--filter")
        else { return false }
        return atexit { ReplayWatch.end() } == 0
    }()

    /// Notes that a test replays the schedule.
    static func note() { hasReplayed.store(true, ordering: .relaxed) }

    /// Ends the finished process with a failure status.
    private static func end() {
        guard !hasReplayed.load(ordering: .relaxed) else { return }
        StandardError.write(
            """

            Interleavings: INTERLEAVINGS_REPLAY is set, but no test replayed it: the filter matches none that explores. Copy the \
            whole line from the report, or compare the filter with the names that 'swift test list' prints.

            """)
        fflush(nil)
        _exit(1)
    }
}
