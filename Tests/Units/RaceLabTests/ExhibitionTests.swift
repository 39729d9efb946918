import Foundation
import Interleavings
import RaceGallery
import Testing

@testable import race_lab

/// What `--show` prints.
@Suite struct `The exhibition` {
    @Test(
        arguments: [
            ("stage 1", "all callers ask at once"), ("stage 2", "all callers ask at once"),
            ("stage 3", "a user signs out meanwhile"), ("naive actor", "all callers ask at once"),
        ])
    func `--show draws a failing schedule of a broken design, and says how to replay it`(_ name: String, trial: String)
        async throws
    {
        let text = try await Exhibition(of: try #require(Design.all.first { $0.name == name })).description
        #expect(text.hasPrefix("\(name) fails in "))
        #expect(text.contains("where \(trial):"))
        #expect(text.contains(") failed: "))
        #expect(text.contains(".replay("))
    }

    @Test(arguments: [Design.callbackShim, .tokenService].map(\.name))
    func `--show says of a design that never fails how many schedules there were`(_ name: String) async throws {
        let design = try #require(Design.all.first { $0.name == name })
        let schedules = try await Contrast(of: design).schedules
        let text = try await Exhibition(of: design).description
        #expect(text.hasPrefix("\(name) never fails: \(schedules) schedules explored"))
        #expect(!text.contains(".replay("))
    }

    @Test(arguments: Design.all.map(\.name))
    func `--show fits a terminal of 80 columns, and shows no function's type`(_ name: String) async throws {
        let text = try await Exhibition(of: try #require(Design.all.first { $0.name == name })).description
        #expect(text.tooLong == [])
        #expect(!text.contains("Function"))
    }

    #if DEBUG
    // Another build takes other steps.
    @Test func `the guide shows what --show prints`() async throws {
        let guide = try String(contentsOf: root.appending(path: "Docs/Guides.docc/AvoidingRaces.md"), encoding: .utf8)
        for design in [Design.enqueueing, .threadSafe, .reentrant] {
            let text = try await Exhibition(of: design).description
            let start = try #require(text.range(of: "\nSchedule ")).upperBound
            #expect(guide.contains(text[start...]), "\(text)")
        }
        let schedules = try await Contrast(of: .tokenService).schedules
        #expect(guide.contains("--show TokenService` tries \(schedules) schedules"), "\(schedules)")
        let stage1 = try await Exhibition(of: .unpredictable).description
        #expect(guide.contains(try #require(stage1.firstMatch(of: /fails in \d+ of \d+ schedules/)).0))
    }
    #endif

    @Test func `--show draws the schedule with the fewest delays`() async throws {
        let design = Design.enqueueing
        // First come, first served: nothing fails. One delay is enough.
        #expect(try await Trial.rush.explore(design, callers: 2, .exhaustive(delays: 0)).failures == 0)
        let text = try await Exhibition(of: design).description
        let schedule = try #require(text.firstMatch(of: /\.replay\("([0-9.]+)"\)/)).1
        #expect(schedule.split(separator: ".").reduce(0) { $0 + (Int($1) ?? 0) } == 1)
    }
}
