import AccessTokens
package import Interleavings

/// A bug that some library shipped, reduced to a scenario that shows it, and the same scenario on `TokenService`.
///
/// Each exhibit has its own file, with the broken service and the scenario.
package struct Exhibit: Sendable, CustomStringConvertible {
    /// The code that is run under each schedule.
    package typealias Scenario = @Sendable (_ simulation: Simulation) async throws -> Void

    /// How a caller gets a token from the service that a scenario is about.
    typealias Retrieve = @Sendable () async throws -> AccessToken

    /// Its number in the museum, from 1.
    package let number: Int
    /// Its lesson, as a sentence without its full stop.
    package let lesson: String
    /// The projects that shipped the bug.
    package let source: String
    /// How its schedules are chosen; the bug is found within them.
    package let strategy: Strategy
    /// When its clock moves.
    package let time: TimeModel
    /// Where its tasks may be switched.
    package let granularity: Granularity
    /// Fails under some schedule.
    package let broken: Scenario
    /// The same on `TokenService` or its shim; fails under no schedule.
    package let mended: Scenario

    init(
        _ number: Int, _ lesson: String, source: String, strategy: Strategy = .mixed(), time: TimeModel = .whenIdle,
        granularity: Granularity = .jobs, broken: @escaping Scenario, mended: @escaping Scenario
    ) {
        self.number = number
        self.lesson = lesson
        self.source = source
        self.strategy = strategy
        self.time = time
        self.granularity = granularity
        self.broken = broken
        self.mended = mended
    }

    /// Its number and its lesson.
    package var description: String { "museum \(number): \(lesson)" }

    /// All of them, by number.
    package static let all: [Exhibit] = [
        checkSuspendSet, lateFlag, cancelledFirstCaller, cancelledSharedLoad, cachedFailure, displacedToken, undoneSignOut,
        overwrittenSignIn, evictedSuccessor, lateRefusal, concurrentRefreshes, repeatedToken, joinedForcedRefresh,
        silentServer, disabledTimeLimit, doubleResume, earlyWakeUp, droppedCallbacks, lostRotation, selfAwaitingLoad,
        oversizedLeeway, overflowingBackOff, clockSetBack, staleRefresh, tornRead, scopeBlindLoad, handlersUnderLock,
        blockedPool, mistakenSignOut, parallelSpending, unboundedKeys, uncoordinatedProcesses, clearedSuccessor,
        deletedSuccessor, stolenLock, repeatedRefresh, lostScope, carriedSignOut,
    ]
}
