#if os(Linux) && DEBUG
// In a release build, the optimizer moves functions into others and lines with them.
import Foundation
@testable import Interleavings
import InterleavingsEverything
import Synchronization
import Testing
import UntouchedCode

@Suite struct `The await that a report blames` {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    private func line(_ mark: String, in file: String = "BrokenPrograms.swift") throws -> Int {
        let text = try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
        return 1 + (try #require(text.split(separator: "\n", omittingEmptySubsequences: false).firstIndex { $0.contains(mark) }))
    }

    private func failure(
        _ driving: Driving = .preferred, time: TimeModel = .whenIdle, _ scenario: @escaping Exploration.Scenario
    ) async throws -> ScheduleFailure {
        do { try await explore(time: time, driving: driving, scenario) } catch let failure as ScheduleFailure { return failure }
        throw Missing()
    }

    private struct Missing: Error {}

    @Test(arguments: BrokenProgram.all, [Driving.preferred, .everything])
    func `is the one at which a task came between a check and an act, not one that a bystander crossed`(
        _ program: BrokenProgram, _ driving: Driving
    ) async throws {
        let failure = try await failure(driving, program.scenario)
        let blame = try #require(failure.blame, "\(failure)")
        let place = "BrokenPrograms.swift:\(try line("\(program.suspended) is crossed here"))"
        #expect(blame.contains(" was suspended in \(program.suspended) at InterleavingsEverythingTests/\(place) (steps "))
        #expect(blame.contains(program.meanwhile))
        for bystander in program.bystanders { #expect(!blame.contains("'\(bystander)'")) }
        #expect("\(failure)".contains("\n\n\(blame)\n\n"), "stands before the picture")
        #expect(FailurePage(failure).html.contains("<p id=\"blame\">\(blame.replacing("'", with: "&#39;"))</p>"))
    }

    @Test func `is found in a view model, among many on the main actor`() async throws {
        let failure = try await failure(.everything) { simulation in
            let model = await SearchModel(checksAgain: false)
            simulation.spawn("user") { @MainActor in
                model.type("a")
                try await Task.sleep(for: .milliseconds(500))
                model.type("alien")
            }
            try await simulation.settle()
            try simulation.require(await model.results == "results for alien", "what was typed last")
        }
        let place = "UntouchedCode/SearchModel.swift:\(try line("await Self.find", in: "../UntouchedCode/SearchModel.swift"))"
        let function = "closure #1 in SearchModel.type(_:)"
        let blame = try #require(failure.blame, "\(failure)")
        #expect(blame.hasPrefix("While 'user.1' was suspended in \(function) at \(place) (steps "), "\(blame)")
        #expect(blame.hasSuffix("'user.2' ran the same function on the main actor."), "\(blame)")
    }

    @Test func `is in the code under test, not in the scenario that calls it`() async throws {
        let failure = try await failure(.everything, time: .whenIdle) { simulation in
            let prices = Prices()
            let order = await Order(prices)
            let buyer = simulation.spawn("buyer") { @MainActor in
                simulation.log("looks")
                try await order.pay()
                simulation.log("paid")
            }
            simulation.spawn("friend") { @MainActor in
                simulation.log("waits")
                try await buyer.value
                simulation.log("goes")
            }
            simulation.spawn("seller") { @MainActor in
                try await Task.sleep(for: .seconds(1))
                prices.price = 120
            }
            try await simulation.settle()
            try simulation.require(await order.paid == order.shown, "what was shown")
        }
        let (function, file) = ("Order.pay()", "CrossingTests.swift")
        let place = "InterleavingsEverythingTests/\(file):\(try line("\(function) is crossed here", in: file))"
        let blame = try #require(failure.blame, "\(failure)")
        #expect(blame.hasPrefix("While 'buyer' was suspended in \(function) at \(place) (steps "), "\(blame)")
        #expect(blame.contains("'seller' called the main actor at "), "\(blame)")
    }

    @Test func `is in the code under test, even if other schedules cross that await in another order of tasks`() async throws {
        let failure = try await failure(.everything) { simulation in
            let suggestions = Suggestions()
            simulation.spawn("user") { @MainActor in
                Task { try await suggestions.type("a", answeredIn: .milliseconds(300)) }
                try await Task.sleep(for: .milliseconds(50))
                Task { try await suggestions.type("ab", answeredIn: .milliseconds(100)) }
            }
            try await simulation.settle()
            try simulation.require(await suggestions.shown == "ab", "what was typed last")
        }
        let (function, file) = ("Suggestions.type(_:answeredIn:)", "CrossingTests.swift")
        let place = "InterleavingsEverythingTests/\(file):\(try line("\(function) is crossed here", in: file))"
        let blame = try #require(failure.blame, "\(failure)")
        #expect(blame.hasPrefix("While 'user.1' was suspended in \(function) at \(place) (steps "), "\(blame)")
    }

    @Test func `is in the scenario if the mistake is in the scenario`() async throws {
        let failure = try await failure(.everything) { simulation in
            let (prices, worker) = (Prices(), Worker(clock: simulation.clock))
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) { @MainActor in
                    let before = prices.price
                    await Task.yield()  // The scenario is crossed here
                    prices.price = before + 1
                    // Because of the bug, they reach the worker in the other order, which is harmless.
                    try await Task.sleep(for: .milliseconds(name == "Anna" ? 200 : before == 100 ? 100 : 300))
                    await worker.work()
                }
            }
            try await simulation.settle()
            try simulation.require(await prices.price == 102, "both raise the price")
        }
        let line = try line("The \("scenario") is crossed here", in: "CrossingTests.swift")
        let blame = try #require(failure.blame, "\(failure)")
        #expect(blame.contains("`() at InterleavingsEverythingTests/CrossingTests.swift:\(line) (steps "), "\(blame)")
    }

    @Test func `is the outer one of two awaits in the same actor`() async throws {
        let failure = try await failure { simulation in
            let vault = Vault()
            simulation.spawn("Anna") { await vault.get() }
            simulation.spawn("Ben") { await vault.get() }
            try await simulation.settle()
            try simulation.require(await vault.fetches == 1, "one fetch")
        }
        let place = "InterleavingsEverythingTests/BrokenPrograms.swift:\(try line("Vault.get() is crossed here"))"
        #expect(failure.blame?.contains(" in Vault.get() at \(place) (steps ") == true, "\(failure)")
    }

    @Test func `is missing if every schedule fails`() async throws {
        let failure = try await failure { simulation in
            let worker = Worker(clock: simulation.clock)
            simulation.spawn("Anna") { await worker.work() }
            simulation.spawn("Ben") { await worker.work() }
            try await simulation.settle()
            try simulation.require(false, "never holds")
        }
        #expect(failure.blame == nil)
    }

    @Test func `is missing if the failure doesn't depend on the order of calls`() async throws {
        let failure = try await failure { simulation in
            let worker = Worker(clock: simulation.clock)
            simulation.spawn("Anna") { await worker.work() }
            simulation.spawn("Ben") { await worker.work() }
            let first = simulation.choose("number", 3)
            try await simulation.settle()
            try simulation.require(first < 2, "less than two")
        }
        #expect(failure.blame == nil)
    }

    @Test func `is missing if only the order of the tasks' ends matters`() async throws {
        let failure = try await failure { simulation in
            let worker = Worker(clock: simulation.clock)
            let order = Mutex<[String]>([])
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) {
                    await worker.work()
                    order.withLock { $0.append(name) }
                }
            }
            try await simulation.settle()
            try simulation.require(order.withLock { $0 } == ["Anna", "Ben"], "Anna is first")
        }
        #expect(failure.blame == nil)
    }

    @Test func `is found if the tasks' first steps run on an executor of the program's own`() async throws {
        let failure = try await failure { simulation in
            let thread = OneThread(simulation)
            let account = Account(simulation)
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) { try await Task(executorPreference: thread) { try await account.add() }.value }
            }
            try await simulation.settle()
            try simulation.require(await account.sum == 2, "both are counted")
        }
        #expect(failure.blame?.contains(" was suspended in Account.add() at ") == true, "\(failure)")
    }

    @Test func `is missing in a program without function names`() async throws {
        let failure = try await Overrides.unaided { try await self.failure(.preferred, BrokenProgram.price.scenario) }
        #expect(failure.blame == nil)
    }
}

/// A queue that runs tasks.
private final class OneThread: TaskExecutor {
    private let queue: VirtualQueue

    init(_ simulation: Simulation) {
        queue = simulation.serialQueue("thread")
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private actor Account {
    private let executor: any SerialExecutor
    private let clock: VirtualClock
    private(set) var sum = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

    init(_ simulation: Simulation) {
        executor = simulation.actorExecutor("account")
        clock = simulation.clock
    }

    func add() async throws {
        try await clock.sleep(for: .seconds(1))
        let before = sum
        try await clock.sleep(for: .seconds(1))
        sum = before + 1
    }
}

@MainActor private final class Prices {
    var price = 100
}

@MainActor private final class Order {
    private let prices: Prices
    private(set) var shown = 0
    private(set) var paid = 0

    init(_ prices: Prices) {
        self.prices = prices
    }

    func pay() async throws {
        try await Task.sleep(for: .milliseconds(500))
        shown = prices.price
        try await Task.sleep(for: .milliseconds(500))  // Order.pay() is crossed here
        paid = prices.price
    }
}

@MainActor private final class Suggestions {
    private(set) var shown = ""

    func type(_ text: String, answeredIn duration: Duration) async throws {
        try await Task.sleep(for: duration)  // Suggestions.type(_:answeredIn:) is crossed here
        shown = text
    }
}

/// A harmless call.
private actor Worker {
    private var works = 0
    private let clock: any Clock<Duration>

    init(clock: any Clock<Duration>) {
        self.clock = clock
    }

    func work() async {
        works += 1
        try? await clock.sleep(for: .seconds(1))
        works += 1
    }
}
#endif
