import Foundation
import Interleavings
import InterleavingsEverything
import RaceGallery
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The museum's services again, unmodified: they take no parameters from the simulation.
@Suite struct `The museum, untouched` {
    static let exhibits = Exhibit.all.filter { Untouched($0).driving != nil }

    /// A third of them, drawn at random; all of them in a thorough run.
    static let drawn = isThorough ? exhibits : Array(exhibits.shuffled().prefix(11))

    @Test(arguments: drawn)
    func `an exhibit's broken service breaks its promise without a seam, and its schedule replays`(
        _ exhibit: Exhibit
    ) async throws {
        let promise = try #require(`The museum`.promises[exhibit.number])
        let driving = try #require(Untouched(exhibit).driving)
        func failure(under strategy: Strategy) async throws -> ScheduleFailure {
            try await #require(throws: ScheduleFailure.self) {
                try await explore(
                    strategy, time: exhibit.time, granularity: exhibit.granularity, driving: driving, exhibit.broken)
            }
        }
        let first = try await failure(under: exhibit.strategy)
        let again = try await failure(under: .replay(first.schedule))
        for failure in [first, again] {
            let problem = try #require(failure.underlying as? ExplorationProblem)
            #expect(problem.code == (`The museum`.deadlocks.contains(exhibit.number) ? .deadlock : .requirement))
            #expect(`The museum`.text(of: problem).contains(promise), "\(problem)")
        }
        #if DEBUG
        #expect(first.number <= 16, "as the guide says")
        #endif
        // A plain Boolean: otherwise the testing library would describe every step of both operands.
        let isSame = first.trace == again.trace
        #expect(isSame)
    }

    @Test(arguments: drawn)
    func `a TokenService with its default environment keeps an exhibit's promise`(_ exhibit: Exhibit) async throws {
        let driving = try #require(Untouched(exhibit).driving)
        let (sampled, searched) = (Int.everyday(10, thorough: 400), Int.everyday(8, thorough: 100))
        for strategy in [Strategy.mixed(schedules: sampled), .exhaustive(preemptions: 1, limit: searched)] {
            try await explore(
                strategy, time: exhibit.time, granularity: exhibit.granularity, driving: driving, exhibit.mended)
        }
    }

    #if DEBUG
    @Test func `the guide says in which schedule a cleared successor is found`() async throws {
        let exhibit = try #require(Self.exhibits.first { $0.number == 33 })
        let found = await #expect(throws: ScheduleFailure.self) {
            try await explore(driving: .everything, exhibit.broken)
        }
        let number = try #require(found).number
        let bug = "each waiter of a failed fetch clears its successor | google-cloud-swift, `TokenCache.swift` @ed00569b"
        let row = "| \(bug) | \(number) |"
        let page = try String(contentsOf: Untouched.guide, encoding: .utf8)
        #expect(page.contains(row), "\(row)")
    }
    #endif

    @Test func `Docs/Untouched.md has a row for each exhibit that isn't simply found`() throws {
        let page = try String(contentsOf: Untouched.page, encoding: .utf8)
        for exhibit in Exhibit.all {
            let line = "| \(exhibit.number) | \(exhibit.lesson) | \(Untouched(exhibit).text) |"
            #expect(page.contains(line) == (Untouched(exhibit).text != "found"), "\(line)")
        }
        #expect(page.contains("finds \(Self.exhibits.count) of the museum's \(Exhibit.all.count) bugs"))
        let sentence = "\(Self.exhibits.count) of the museum's \(Exhibit.all.count) bugs, each within the first 16 schedules"
        #expect(try String(contentsOf: Untouched.guide, encoding: .utf8).contains(sentence))
    }
}
