import Foundation
import Interleavings
import InterleavingsTesting
import RaceGallery
import TestBudgets
import Testing

@testable import race_lab

/// The output of `--show`.
@Suite(.unaided) struct `The exhibition` {
    @Test(
        arguments: [
            ("stage 1", "all callers ask at once"), ("stage 2", "all callers ask at once"),
            ("stage 3", "a user signs out meanwhile"), ("naive actor", "all callers ask at once"),
        ])
    func `--show draws a failing schedule of a broken design, and says how to replay it`(_ name: String, trial: String)
        async throws
    {
        let text = try await exhibition(of: name)
        #expect(text.hasPrefix("\(name) fails in "))
        #expect(text.contains("where \(trial):"))
        #expect(text.contains(") failed: "))
        #expect(text.contains(".replay("))
    }

    @Test(arguments: isThorough ? [Design.callbackShim, .tokenService].map(\.name) : [Design.tokenService.name])
    func `--show reports how many schedules there were for a design that never fails`(_ name: String) async throws {
        let schedules = try #require(try await LabRun.usual.value.report.designs.first { $0.design == name }?.schedules)
        let text = try await exhibition(of: name)
        #expect(text.hasPrefix("\(name) never fails: \(schedules) schedules explored"))
        #expect(!text.contains(".replay("))
    }

    @Test(arguments: Design.all.map(\.name))
    func `--show fits a terminal of 80 columns, but for code to copy, and shows no function's type`(_ name: String) async throws {
        let text = try await exhibition(of: name)
        #expect(text.tooLong.allSatisfy { $0.hasPrefix("    try await explore(.replay(") })
        #expect(!text.contains("Function"))
    }

    @Test(arguments: [40, 60, 80], [Design.enqueueing, .threadSafe])
    func `--show fits a narrower terminal with a list of the steps, and never breaks the replay line`(
        columns: Int, design: Design
    ) async throws {
        let exhibition = try await exhibition(named: design.name)
        let lines = Console.$columns.withValue(columns) { exhibition.description }.split(separator: "\n")
        let replay = try #require(lines.last)
        #expect(replay.wholeMatch(of: #/ {4}try await explore\(\.replay\("[0-9.]+"\).*\{ simulation in …/#) != nil)
        #expect(lines.dropLast().filter { $0.count > columns } == [])
        #expect(lines.contains { $0.hasPrefix("step  scenario") } == (columns == 80))
        #expect(lines.contains { $0.contains(#/^ +7   (caller 1|network): /#) } == (columns < 80), "\(lines)")
    }

    @Test(arguments: [Design.enqueueing, .reentrant])
    func `--page walks through the schedule that --show draws, beside one that passes`(_ design: Design) async throws {
        let exhibition = try await exhibition(named: design.name)
        let page = try #require(exhibition.page)
        let replay = try #require(exhibition.description.firstMatch(of: /\.replay\("([0-9.]*)"\)/)).1
        #expect(page.contains("\"schedule\":\"\(replay)\""))
        #expect(page.contains("The nearest schedule that passes is"))
    }

    @Test func `--page writes no page for a design that never fails`() async throws {
        #expect(try await exhibition(named: Design.tokenService.name).page == nil)
    }

    #if DEBUG
    // Other builds take other steps.
    @Test func `the guide shows what --show prints`() async throws {
        let page = root.appending(path: "Sources/AccessTokens/AccessTokens.docc/AvoidingRaces.md")
        let guide = try String(contentsOf: page, encoding: .utf8)
        for design in [Design.enqueueing, .threadSafe] {
            let text = try await exhibition(of: design.name)
            let start = try #require(text.range(of: "\nSchedule ")).upperBound
            #expect(guide.contains(text[start...]), "\(text)")
        }
        let schedules = try #require(try await LabRun.usual.value.report.designs.last?.schedules)
        #expect(guide.contains("--show TokenService` tries \(schedules) schedules"), "\(schedules)")
        let stage1 = try await exhibition(of: Design.unpredictable.name)
        #expect(guide.contains(try #require(stage1.firstMatch(of: /fails in \d+ of \d+ schedules/)).0))
    }

    @Test func `the race finder's README draws the naive actor as --show does`() async throws {
        let readme = try String(contentsOf: root.appending(path: "Sources/Interleavings/README.md"), encoding: .utf8)
        let drawing = try #require(readme.firstMatch(of: /(?s)```\n(step  .*?\n)```/)).1
        let text = try await exhibition(of: Design.reentrant.name)
        #expect(text.contains("\n\(drawing)\n"), "\(text)")
    }
    #endif

    @Test func `--show draws the schedule with the fewest delays`() async throws {
        let design = Design.enqueueing
        // First come, first served: nothing fails. One delay is enough.
        #expect(try await Trial.rush.explore(design, callers: 2, .exhaustive(delays: 0)).failures == 0)
        let text = try await exhibition(of: design.name)
        let schedule = try #require(text.firstMatch(of: /\.replay\("([0-9.]+)"\)/)).1
        let delays = schedule.split(separator: ".").compactMap { Int($0) }.reduce(0, +)
        #expect(delays == 1)
    }
}
