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
        _ driving: Driving = .preferred, time: TimeModel? = nil, _ scenario: @escaping Exploration.Scenario
    ) async throws -> ScheduleFailure {
        do { try await explore(time: time, driving: driving, scenario) } catch let failure as ScheduleFailure { return failure }
        throw Missing()
    }

    private struct Missing: Error {}

    @Test(arguments: BrokenProgram.all, [Driving.preferred, .everything])
    func `is that at which a task came between a check and an act, not one that a bystander crossed`(
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

    @Test func `is the outer one of two in the same actor`() async throws {
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

    @Test func `is none where every schedule fails`() async throws {
        let failure = try await failure { simulation in
            let worker = Worker(clock: simulation.clock)
            simulation.spawn("Anna") { await worker.work() }
            simulation.spawn("Ben") { await worker.work() }
            try await simulation.settle()
            try simulation.require(false, "never holds")
        }
        #expect(failure.blame == nil)
    }

    @Test func `is none where another order than that of calls is to blame`() async throws {
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

    @Test func `is none where the order of ends is to blame`() async throws {
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

    @Test func `is none in a program that names no functions`() async throws {
        let failure = try await Overrides.unaided { try await self.failure(.preferred, BrokenProgram.price.scenario) }
        #expect(failure.blame == nil)
    }
}

/// Does nothing wrong.
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
