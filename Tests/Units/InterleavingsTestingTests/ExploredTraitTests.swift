import Dispatch
import Interleavings
import InterleavingsTesting
import Synchronization
import Testing
import TokenServiceConcurrency

#if os(Linux)
/// The subject of tests that guess: a model that mirrors the status of a stream.
private actor Mirror {
    private(set) var status = ""

    func set(_ text: String) { status = text }

    nonisolated func follow() -> (AsyncStream<String>.Continuation, Task<Void, Never>) {
        let (stream, continuation) = AsyncStream<String>.makeStream()
        return (continuation, Task { for await text in stream { await self.set(text) } })
    }
}

@MainActor private final class Screen {
    private(set) var text = "idle"

    @discardableResult func appear() -> Task<Void, Never> {
        Task {
            await Self.load()
            text = "done"
        }
    }

    @concurrent private static func load() async { await Task.yield() }
}

/// How often something happened in this process.
private enum Tally {
    static let inits = Atomic(0), deinits = Atomic(0), cases = Lock<[Int: Int]>([:]), syncs = Atomic(0), quiet = Atomic(0)
    static let scopes = Atomic(0), inner = Atomic(0), left = Lock<[CheckedContinuation<Void, Never>]>([])
}

/// Runs a body as the test of a suite with the trait; returns the comments of the issues.
func issues(
    of trait: ExploredTrait, _ body: @escaping @Sendable () async throws -> Void
) async throws -> [String] {
    let seen = Lock<[String]>([])
    let test = try #require(Test.current)
    let collector: IssueHandlingTrait = .compactMapIssues { issue in
        seen.withLock { $0.append(issue.comments.first.map(\.rawValue) ?? "\(issue.kind)") }
        return nil
    }
    try await collector.provideScope(for: test, testCase: nil) {
        try await trait.provideScope(for: test, testCase: nil, performing: body)
    }
    return seen.withLock { $0 }
}

private func follow(_ wait: @Sendable (Mirror) async throws -> Void) async throws {
    let mirror = Mirror()
    let (continuation, task) = mirror.follow()
    continuation.yield("downloading")
    try await wait(mirror)
    #expect(await mirror.status == "downloading")
    continuation.finish()
    await task.value
}

@Suite struct `A test with the explored trait` {
    @Test(arguments: [1, 100, 1_000]) func `fails if it guesses by counting yields`(most: Int) async throws {
        let found = try await issues(of: .explored()) {
            try await follow { mirror in
                for _ in 0..<most where await mirror.status.isEmpty { await Task.yield() }
            }
        }
        #expect(found.count == 1)
        #expect(found.first?.contains("of 200 (mixed, seed 1) failed: Expectation failed: ") == true, "\(found)")
        #expect(found.first?.contains("@Test(.explored(replay: \"") == true, "\(found)")
        #expect(found.first?.contains("INTERLEAVINGS_REPLAY='") == true, "\(found)")
    }

    @Test func `passes if it waits without counting`() async throws {
        let found = try await issues(of: .explored(schedules: 20)) {
            try await follow { mirror in while await mirror.status.isEmpty { await Task.yield() } }
        }
        #expect(found.isEmpty, "\(found)")
    }

    @Test func `passes if it polls up to a deadline on the clock, and fails if time may move at any time`() async throws {
        for (time, most) in [(TimeModel.whenIdle, 0), (.anytime, 1)] {
            let found = try await issues(of: .explored(time: time)) {
                try await follow { mirror in
                    let end = ContinuousClock.now + .seconds(1)
                    while await mirror.status.isEmpty, .now < end { try await Task.sleep(for: .milliseconds(600)) }
                }
            }
            #expect(found.count == most, "\(found)")
        }
    }

    @Test func `fails if it relies on a long sleep and time may move at any time`() async throws {
        for (time, most) in [(TimeModel.whenIdle, 0), (.anytime, 1)] {
            let found = try await issues(of: .explored(time: time)) {
                try await follow { _ in try await Task.sleep(for: .milliseconds(20)) }
            }
            #expect(found.count == most, "\(found)")
        }
    }

    @Test func `fails if it guesses on the main actor`() async throws {
        let found = try await issues(of: .explored()) { @MainActor in
            let screen = Screen()
            screen.appear()
            await Task.yield()
            await Task.yield()
            #expect(screen.text == "done")
        }
        #expect(found.count == 1)
        let right = try await issues(of: .explored()) { @MainActor in
            let screen = Screen()
            await screen.appear().value
            #expect(screen.text == "done")
        }
        #expect(right.isEmpty, "\(right)")
    }

    @Test func `fails with its thrown error, its requirement, its confirmation or its issue`() async throws {
        struct Mistake: Error {}
        #expect(try await issues(of: .explored()) { throw Mistake() }.first?.contains("failed: Mistake()") == true)
        #expect(
            try await issues(of: .explored()) { try #require(Bool(false), "required") }.first?.contains("failed: required")
                == true)
        #expect(try await issues(of: .explored()) { Issue.record("recorded") }.first?.contains("failed: recorded") == true)
        let text = try await issues(of: .explored()) { await confirmation("called") { _ in } }.first ?? ""
        #expect(text.contains("failed: called: Confirmation was confirmed 0 times"), "\(text)")
    }

    @Test func `passes with a confirmation that is awaited`() async throws {
        let found = try await issues(of: .explored()) {
            await confirmation(expectedCount: 2) { confirm in
                await withTaskGroup { group in
                    for _ in 1...2 { group.addTask { confirm() } }
                }
            }
        }
        #expect(found.isEmpty, "\(found)")
    }

    #if compiler(>=6.3)
    @Test func `keeps a known issue known, and reports it once`() async throws {
        let found = try await issues(of: .explored()) {
            await withTaskGroup { group in for _ in 1...2 { group.addTask {} } }
            withKnownIssue { Issue.record("known") }
        }
        #expect(found == ["known"])
        let other = try await issues(of: .explored()) { withKnownIssue {} }
        #expect(other.count == 1)
        #expect(other.first?.contains("failed: Known issue was not recorded") == true, "\(other)")
    }
    #endif

    @Test func `fails if it waits forever, and the process goes on`() async throws {
        let text = try await issues(of: .explored()) {
            await withCheckedContinuation { waiting in Tally.left.withLock { $0.append(waiting) } }
        }
        #expect(text.first?.contains("Deadlock") == true, "\(text)")
        // What a hung test awaited may come later; its body is gone then.
        let left = Tally.left.withLock { left in
            defer { left = [] }
            return left
        }
        #expect(!left.isEmpty)
        for waiting in left { waiting.resume() }
    }

    @Test func `that can't be explored or never ends says what to do`() async throws {
        let escape = try await issues(of: .explored()) {
            await withCheckedContinuation { waiting in DispatchQueue.global().async { waiting.resume() } }
        }
        #expect(escape.first?.contains("'.explored(schedules: 0)' leaves a test as it is.") == true, "\(escape)")
        let endless = try await issues(of: .explored(stepLimit: 100)) {
            let end = ContinuousClock.now + .seconds(1)
            while .now < end { await Task.yield() }
        }
        #expect(endless.first?.contains("or they yield until a deadline, but time moves only") == true, "\(endless)")
    }

    @Test func `runs one schedule if there is only one order`() async throws {
        _ = try await issues(of: .explored()) { Tally.quiet.add(1, ordering: .relaxed) }
        // Once more, to see that the same choices lead to the same execution.
        #expect(Tally.quiet.load(ordering: .relaxed) == 2)
    }
}

@Suite(.serialized) struct `A suite with the explored trait` {
    @Suite(.explored(schedules: 10)) final class Inner: Sendable {
        private let value: Int

        init() async {
            Tally.inits.add(1, ordering: .relaxed)
            async let one = 1
            async let two = 2
            value = await one + two
        }

        deinit { Tally.deinits.add(1, ordering: .relaxed) }

        @Test(arguments: [1, 2, 3]) func `is explored for each argument separately`(number: Int) async {
            await withTaskGroup { group in for _ in 0..<2 { group.addTask { await Task.yield() } } }
            Tally.cases.withLock { $0[number, default: 0] += 1 }
            #expect(value == 3)
        }

        @Test(arguments: [1], ["a", "b"]) func `has its own place, for a crash`(number: Int, text: String) {
            let place = Overrides.current.place ?? ""
            let name = "Inner/`has its own place, for a crash`(number:text:) with 1, \(text)"
            #expect(place.hasPrefix("InterleavingsTestingTests.") && place.hasSuffix(name), "\(place)")
        }

        @Test(.explored(schedules: 0)) func `leaves a test with zero schedules as it is`() {
            Tally.syncs.add(1, ordering: .relaxed)
            #expect(Simulation.current == nil)
        }

        @Test @MainActor func `can run a test on the main actor`() async throws {
            MainActor.assertIsolated()
            #expect(Simulation.current != nil)
        }
    }

    @Test func `runs its init and deinit in each schedule of each case`() {
        let cases = Tally.cases.withLock { $0 }
        #expect(cases.count == 3)
        #expect(cases.values.allSatisfy { $0 >= 10 }, "\(cases)")
        #expect(Tally.syncs.load(ordering: .relaxed) == 1)
        #expect(Tally.inits.load(ordering: .relaxed) >= 30)
        #expect(Tally.inits.load(ordering: .relaxed) == Tally.deinits.load(ordering: .relaxed))
    }
}
#endif
