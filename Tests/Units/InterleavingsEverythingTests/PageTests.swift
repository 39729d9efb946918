#if os(Linux)
@testable import Interleavings
@testable import InterleavingsEverything
import Testing

// Functions must be named, but the optimizer would inline these into their callers.

/// Loses what was written while it waited.
private actor Shop {
    private var left = 1

    @inline(never) func sell() async throws -> Int {
        let before = left
        try await pack()
        left = before - 1
        return left
    }

    @inline(never) private func pack() async throws {
        await Task.yield()
        await withCheckedContinuation { $0.resume() }
    }
}

@inline(never) private func nap() async throws { try await Task.sleep(for: .seconds(1)) }

@inline(never) private func visit(_ shop: Shop) async throws {
    async let left = shop.sell()
    _ = try await left
}

@Suite struct `The page of a failure in a linked program` {
    /// The functions of a failing schedule's steps, by task and in order; none twice in a row.
    private func functions(_ driving: Driving) async throws -> (page: String, steps: [String]) {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay(""), driving: driving) { simulation in
                let shop = Shop()
                simulation.spawn("Anna") { try await visit(shop) }
                simulation.spawn("Ben") {
                    try await withThrowingTaskGroup(of: Int.self) { group in
                        group.addTask { try await shop.sell() }
                        for try await _ in group {}
                    }
                }
                try await simulation.settle()
                try simulation.require(false, "it never holds")
            }
        }
        let page = FailurePage(try #require(error)).data.text
        let steps = page.matches(of: /"task":"([^"]*)"[^\n]*?"function":"([^"]*)"/).map { "\($0.1): \($0.2)" }
        return (page, steps.reduce(into: []) { all, step in if all.last != step { all.append(step) } })
    }

    @Test(arguments: [Driving.preferred, .everything, .everythingAndQueues])
    func `names the function in which a step's task goes on`(_ driving: Driving) async throws {
        let (page, steps) = try await functions(driving)
        let known = ["Anna.1: Shop.sell()", "Anna.1: Shop.pack()", "Ben.1: Shop.sell()", "Ben.1: Shop.pack()", "Anna: visit(_:)"]
        #expect(Set(known).subtracting(steps) == [], "\(steps)")
        #expect(steps.contains { $0.hasPrefix("Ben: closure #1 in ") }, "\(steps)")
        #expect(page.contains("A step's function is the one in which its task continues"))
    }

    @Test func `names the function and line of a task where a replay stops`() async throws {
        let error = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay("", stoppingAt: 10), driving: .everything) { simulation in
                let shop = Shop()
                simulation.spawn("Anna") { _ = try await shop.sell() }
                simulation.spawn("Ben") { try await nap() }
                try await simulation.settle()
            }
        }
        let report = "\(try #require(error))"
        #expect(report.contains(/'Ben' runs next, since step 9, in nap\(\) at .*PageTests.swift:\d+\n/), "\(report)")
    }

    @Test(
        arguments: [
            (TaskLayout(), true), (TaskLayout(function: 6), false), (TaskLayout(context: 7), false),
            (TaskLayout(function: 8, context: 9), false), (TaskLayout(function: 8, context: 0), false),
        ])
    func `names functions only if the layout of a known task is read correctly`(_ layout: TaskLayout, isRight: Bool) {
        #expect(layout.readsKnownTask() == isRight)
        #expect(TaskLayout.isRight)
    }

    @Test func `says so where no function can be named`() async throws {
        var overrides = Overrides()
        overrides.isUnaided = true
        let (page, steps) = try await Overrides.$current.withValue(overrides) { try await functions(.preferred) }
        #expect(steps == [])
        #expect(page.contains("Functions are named on Linux, in programs that link InterleavingsEverything."))
    }
}
#endif
