public import Interleavings
public import Testing
import TokenServiceConcurrency

/// Runs a test's own body under many schedules, and reports the first in which it fails.
///
/// ```swift
/// @Suite(.explored()) struct MirrorTests {
///     @Test func `shows the status`() async throws { … }
/// }
/// ```
///
/// - The body stays as it is. `#expect`, `#require`, `withKnownIssue`, `confirmation` and `Issue.record` decide in each schedule
///   whether it fails; the first that does is shrunk and is one issue, as with ``ExplorationTrait``, whose variables apply here, too.
///   With Swift 6.3, a known issue fails nothing and is reported once. An attachment is recorded in each schedule that reaches
///   it, and a time limit covers all schedules together.
/// - Each schedule creates the suite's instance anew: its `init` and `deinit` run every time, and so do traits with a scope that
///   come after this one. Traits that come before it provide their scope once.
/// - A schedule ends with the body. Leftover work that can run does so, without checks; a task that sleeps stays asleep unless it
///   is cancelled. What outlives a schedule, such as a global variable or a file, must be reset in the body or in `init`.
/// - Each case of a parameterised test is explored for itself. In a test with its own trait, the suite's is ignored; `.explored(schedules: 0)`
///   leaves a test as it is. A test with only one order runs once.
///
/// The test target must link `InterleavingsEverything`, which drives a whole test on Linux. On other platforms each test runs once, as
/// without the trait.
public struct ExploredTrait: TestTrait, SuiteTrait, TestScoping {
    private final class Identity: Sendable {}

    private let identity = Identity()
    private let exploration: TestExploration

    /// Suites pass the trait on to their tests.
    public let isRecursive = true

    init(_ exploration: TestExploration) {
        self.exploration = exploration
        _ = ReplayWatch.hasBegun
    }

    /// Runs a test under each schedule, and reports the first that fails.
    @concurrent public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let nearest = test.traits.lazy.compactMap { $0 as? Self }.last
        guard nearest.map({ $0.identity === identity }) ?? true, Simulation.current == nil else { return try await function() }
        try await ExplorationTrait.exploring().provideScope(for: test, testCase: testCase) {
            try await TestBody.lend(function) { body in
                try await exploration.run(.trait, at: test.place(of: testCase)) { _ in try await body.run() }
            }
        }
    }
}

extension Trait where Self == ExploredTrait {
    /// Runs the body of a test, or of each test of a suite, under many schedules; see ``ExploredTrait``.
    ///
    /// - Parameters:
    ///   - schedules: How many schedules to run; 0: the test runs once, as without the trait.
    ///   - seed: The seed of random schedules.
    ///   - replay: The one schedule to run, as a report prints it; `nil`: those that `schedules` and `seed` say.
    ///   - time: When the clock moves. Under `.anytime` a sleep that is "long enough" may end too early.
    ///   - machine: How long a task may be left without a processor. Under `.busy` no number of yields is enough.
    ///   - driving: Which code to drive; `nil`: everything but the queues of Dispatch.
    ///   - stepLimit: How many steps one schedule may have.
    public static func explored(
        schedules: Int = 200, seed: UInt64 = 1, replay: String? = nil, time: TimeModel = .whenIdle, machine: MachineModel = .busy,
        driving: Driving? = nil, stepLimit: Int = 10_000
    ) -> Self {
        ExploredTrait(
            TestExploration(
                schedules: schedules, seed: seed, replay: replay, time: time, machine: machine, driving: driving,
                stepLimit: stepLimit))
    }
}

/// The settings with which a test's body is explored.
struct TestExploration: Sendable {
    var schedules: Int
    var seed: UInt64
    var replay: String?
    var time: TimeModel
    var machine: MachineModel
    var driving: Driving?
    var stepLimit: Int

    /// Runs a scenario that is a whole test; `nil` stands for no simulation.
    func run(
        _ form: TestForm, at place: String, _ scenario: @escaping @Sendable (Simulation?) async throws -> Void
    ) async throws {
        guard schedules > 0 || replay != nil else { return try await scenario(nil) }
        guard let driving = driving ?? .linkedEverything else {
            #if os(Linux)
            throw ExplorationProblem(
                .nothingToExplore, detail: "a whole test can be explored only if its target links InterleavingsEverything")
            #else
            return try await scenario(nil)
            #endif
        }
        var overrides = Overrides.current
        (overrides.test, overrides.place) = (form, place)
        try await Overrides.$current.withValue(overrides) {
            _ = try await explore(
                replay.map { .replay($0) } ?? .mixed(schedules: schedules, seed: seed), time: time, machine: machine,
                driving: driving, stepLimit: stepLimit, scenario)
        }
    }
}

/// A test's body, lent to an exploration, which calls it for each schedule.
///
/// A schedule in which the test waits forever never returns from the body. Its frames would keep the body past the end of the
/// loan, which is an error of the program. But they never continue: the engine abandons them. So the words of the body are kept
/// without a reference, and the references of those frames are given up at the end.
@safe final class TestBody: Sendable {
    typealias Function = @concurrent @Sendable () async throws -> Void

    /// A function inside a struct: by itself, a cast would wrap it in another one.
    private struct Held {
        let function: Function
    }

    private struct Words: Sendable {
        let code: UInt
        let context: UInt
    }

    private let words: Words
    private let ends = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    private init(_ function: @escaping Function) {
        words = unsafe unsafeBitCast(Held(function: function), to: Words.self)
    }

    /// Calls the body.
    func run() async throws {
        defer { ends.continuation.yield() }
        try await unsafe unsafeBitCast(words, to: Held.self).function()
    }

    /// How many references to the body there are.
    private var references: Int { unsafe context.map { unsafe Int(_getRetainCount($0.takeUnretainedValue())) } ?? 0 }

    private var context: Unmanaged<AnyObject>? {
        guard let address = unsafe UnsafeRawPointer(bitPattern: words.context) else { return nil }
        return unsafe Unmanaged.fromOpaque(address)
    }

    /// Calls `use` with a body that must not be called after it returns.
    static func lend(
        _ function: @concurrent @Sendable () async throws -> Void, to use: @Sendable (TestBody) async throws -> Void
    ) async throws {
        try await withoutActuallyEscaping(function) { function in
            let body = TestBody(function)
            let references = body.references
            defer { for _ in 0..<max(body.references - references, 0) { unsafe body.context?.release() } }
            do { try await use(body) } catch let failure as ScheduleFailure where failure.isBlocked {
                // The step may still return, so wait for it, as the test would do without the trait.
                Issue.record("\(failure)")
                for await _ in body.ends.stream { break }
            }
        }
    }
}

extension ScheduleFailure {
    /// Whether a step of the schedule has not returned.
    fileprivate var isBlocked: Bool { (underlying as? ExplorationProblem)?.code == .blockedThread }
}
