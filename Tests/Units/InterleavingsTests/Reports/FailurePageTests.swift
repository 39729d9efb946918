import Foundation
import Testing
import TokenServiceConcurrency

@testable import Interleavings

/// The page that walks through a failure.
@Suite struct `The page of a failure` {
    /// The data that the page's script reads.
    private struct Contents: Decodable {
        struct Run: Decodable {
            struct Step: Decodable {
                struct Event: Decodable { let task, text, kind: String }
                let number, candidates, pick: Int
                let task, place, time: String
                let passedOver: String?
                let events: [Event]
            }
            struct Item: Decodable { let task, text: String }
            let lanes: [String]
            let count: Int?
            let steps: [Step]
            let last: [Item]
        }
        struct Program: Decodable {
            struct Task: Decodable {
                let name: String
                let operations: [String]
            }
            let heading, replay: String
            let tasks: [Task]
        }
        let replay: [String]
        let program: Program?
        let schedule, verdict: String
        let failing: Run
        let passing: Run?
        let parting: Int?
    }

    private func contents(of page: FailurePage) throws -> Contents {
        let json = try #require(page.html.firstMatch(of: /(?s)id="data">(.*?)<\/script>/)).1
        return try JSONDecoder().decode(Contents.self, from: Data(json.utf8))
    }

    /// Explores, and returns the failure with what it is compared with.
    private func failure(
        _ strategy: Strategy, granularity: Granularity = .jobs, _ scenario: @escaping Scenario
    ) async throws -> ScheduleFailure {
        var overrides = Overrides()
        overrides.seeksNearestPass = true
        return try await Overrides.$current.withValue(overrides) {
            try await InterleavingsTests.failure(strategy, granularity: granularity, scenario)
        }
    }

    /// Writes a page and its text to the directory in `WALKED_PAGES`, for a test in a browser.
    private func keep(_ failure: ScheduleFailure, as name: String) throws {
        guard let directory = ProcessInfo.processInfo.environment["WALKED_PAGES"] else { return }
        for (text, end) in [(FailurePage(failure).html, "html"), ("\(failure)\n", "txt")] {
            try Data(text.utf8).write(to: URL(filePath: directory).appending(path: "\(name).\(end)"))
        }
    }

    private func expect(_ run: Contents.Run, is trace: Trace) {
        #expect(run.steps.map(\.number) == trace.steps.map(\.number))
        #expect(run.steps.map(\.task) == trace.steps.map(\.task))
        #expect(run.steps.map(\.place) == trace.steps.map(\.place))
        #expect(run.steps.map(\.time) == trace.steps.map { PlainText.time($0.time) })
        #expect(run.steps.map(\.candidates) == trace.steps.map(\.candidates.count))
        #expect(run.steps.map(\.pick) == trace.steps.map(\.pick))
        #expect(run.steps.map(\.passedOver) == trace.steps.map(\.passedOver))
        let events = run.steps.map { $0.events.map { [$0.task, $0.text, $0.kind] } }
        #expect(events == trace.steps.map { $0.events.map { [$0.task, $0.text, $0.kind.name] } })
        let ran = Set(trace.steps.flatMap { [$0.task] + $0.events.map(\.task) }).subtracting([""])
        #expect(ran.subtracting(run.lanes) == [])
        #expect(Set(run.lanes).count == run.lanes.count)
    }

    @Test(arguments: [Races.lostUpdate, Races.lockOrder])
    func `has each step of both executions as they were`(_ race: @escaping Scenario) async throws {
        let found = try await failure(.mixed(), granularity: .accesses, race)
        let contents = try contents(of: FailurePage(found, command: "swift test --filter 'it'"))
        #expect(!contents.failing.steps.isEmpty)
        expect(contents.failing, is: found.trace)
        guard case .found(let schedule, let trace) = found.nearestPass else {
            Issue.record("no passing schedule")
            return
        }
        expect(try #require(contents.passing), is: trace)
        #expect(contents.schedule == found.schedule)
        #expect(contents.replay == [found.replayLine, "INTERLEAVINGS_REPLAY='\(found.schedule)' swift test --filter 'it'"])
        #expect(contents.verdict.contains("\"\(schedule)\""))
        // The schedule does pass.
        try await explore(.replay(schedule.text), granularity: .accesses, race)
    }

    @Test func `shows the tasks that wait forever after the last step`() async throws {
        let found = try await failure(.mixed(), granularity: .accesses, Races.lockOrder)
        let last = try contents(of: FailurePage(found)).failing.last
        #expect(last.map(\.task) == found.problem?.tasks)
        #expect(last.allSatisfy { $0.text == "waits forever" })
    }

    @Test func `separates the schedules at the switch that makes the failure`() async throws {
        let found = try await failure(.exhaustive(), granularity: .accesses, Races.lostUpdate)
        let contents = try contents(of: FailurePage(found))
        let parting = try #require(contents.parting)
        let step = found.trace.steps[parting - 1]
        #expect(step.pick > 0, "the only switch")
        #expect(found.trace.steps.count { $0.pick > 0 } == 1)
        guard case .found(let schedule, let trace) = found.nearestPass else {
            Issue.record("no passing schedule")
            return
        }
        #expect(schedule == "", "the switch taken back")
        #expect(trace.steps[..<(parting - 1)] == found.trace.steps[..<(parting - 1)])
        #expect(trace.steps[parting - 1].task == step.passedOver)
    }

    @Test func `compares the usual order with the latest switch that passes`() async throws {
        let found = try await failure(.mixed(), Races.undoneSignOut)
        guard case .found(let schedule, let trace) = found.nearestPass else {
            Issue.record("no passing schedule")
            return
        }
        let parting = try #require(try contents(of: FailurePage(found)).parting)
        #expect(schedule.text != found.schedule)
        #expect(trace.steps[..<(parting - 1)] == found.trace.steps[..<(parting - 1)])
        #expect(trace.steps[parting - 1] != found.trace.steps[parting - 1])
    }

    @Test func `says that no schedule passes after a bounded number of tries`() async throws {
        let (found, runs) = (Tally(), Tally())
        let failure = try await failure(.replay("")) { simulation in
            runs.next()
            for number in 1...8 { simulation.spawn("task \(number)") { for _ in 1...5 { await Task.yield() } } }
            try await simulation.settle()
            found.next()
            try simulation.require(false, "it never holds")
        }
        guard case .none(let tried) = failure.nearestPass else {
            Issue.record("a passing schedule, though all fail")
            return
        }
        #expect(tried == 500)
        #expect(runs.value < 510)
        #expect(found.value == runs.value)
        let contents = try contents(of: FailurePage(failure))
        #expect(contents.verdict.contains("500 with one or two other choices were tried, and none passes."))
        #expect(contents.passing == nil && contents.parting == nil)
    }

    @Test func `searches for a passing schedule only if it is asked to`() async throws {
        let runs = Tally()
        let failure = try await InterleavingsTests.failure(.replay("")) { simulation in
            runs.next()
            for number in 1...3 { simulation.spawn("task \(number)") {} }
            try await simulation.settle()
            try simulation.require(false, "it never holds")
        }
        // The second run checks that the execution is the same.
        #expect(runs.value == 2)
        #expect(try contents(of: FailurePage(failure)).verdict.hasSuffix("this one can't be repeated, or there was no search."))
    }

    @Test func `shows any text of the program as plain text`() async throws {
        let texts = [
            "</script><script>alert(1)</script>", "<!-- <script>", "<img src=x onerror=alert(1)>", "\" onclick=\"alert(1)",
            "\\\"",
            "a\u{2028}b\u{1B}[31m\u{202E}c", "&lt;", "${1}`'", "\u{0}",
        ]
        let found = try await failure(.mixed(schedules: 1)) { simulation in
            for text in texts { simulation.spawn(text) { simulation.log(text) } }
            try await simulation.settle()
            throw Words(description: texts.joined())
        }
        let html = FailurePage(found, command: texts.joined()).html
        #expect(html.matches(of: /<script/).count == 2 && html.matches(of: /<\/script/).count == 2)
        #expect(!html.contains("<img") && !html.contains("<!-- ") && !html.contains("\u{1B}") && !html.contains("\u{202E}"))
        let contents = try contents(of: FailurePage(found, command: texts.joined()))
        let logged = contents.failing.steps.flatMap(\.events).filter { $0.kind == "event" }.map(\.text)
        #expect(logged == texts.map { PlainText.clean($0, keepsLines: true) })
    }

    @Test func `shows the operations of a generated program, and how to explore it again`() async throws {
        let words = ["look", "<img src=x onerror=alert(1)>"]
        let error = await #expect(throws: ScheduleFailure.self) {
            try await exploreOperations(words, programs: .random(seed: 7)) { _ in
                Purse()
            } perform: { purse, operation, _ in
                guard operation != "look" else { return }
                let before = purse.coins.withLock { $0 }
                await Task.yield()
                purse.coins.withLock { $0 = before + 1 }
                purse.payments.next()
            } check: { purse in
                try Simulation.current?.require(purse.coins.withLock { $0 } == purse.payments.value, "a coin is lost")
            }
        }
        try keep(try #require(error), as: "generated")
        let page = FailurePage(try #require(error))
        let program = try #require(try contents(of: page).program)
        #expect(program.heading.wholeMatch(of: /Program \d+ of 50 \(seed 7\), shrunk from \d operations to 2/) != nil)
        #expect(program.tasks.map(\.name) == ["task 1", "task 2"])
        #expect(program.tasks.map(\.operations) == [[words[1]], [words[1]]])
        #expect(program.replay == "programs: .replay(\"1|1\")")
        #expect(!page.html.contains("<img"))
        let other = try await failure(.exhaustive(), granularity: .accesses, Races.lostUpdate)
        #expect(try contents(of: FailurePage(other)).program == nil)
    }

    /// Two tasks that let each other run forever; a third one ends.
    private static let livelock: Scenario = { simulation in
        for name in ["a", "b"] { simulation.spawn(name) { while true { await Task.yield() } } }
        simulation.spawn("c") {}
        try await simulation.settle()
    }

    @Test func `leaves out the middle of a long execution, and says how much`() async throws {
        let found = try await InterleavingsTests.failure(.replay(""), stepLimit: 3_000, Self.livelock)
        try keep(found, as: "long")
        #expect(found.problem?.code == .livelock)
        #expect(found.trace.steps.count == 3_000)
        let page = FailurePage(found)
        #expect(page.html.utf8.count < 100_000)
        let run = try contents(of: page).failing
        #expect(run.count == 3_000)
        #expect(run.steps.map(\.number) == Array(1...200) + Array(2_901...3_000))
        let shown = run.steps.map(\.number).map { found.trace.steps[$0 - 1].task }
        #expect(run.steps.map(\.task) == shown)
        #expect(run.last.map(\.task).sorted() == ["a", "b"])
    }

    @Test func `keeps the step at which long executions part`() async throws {
        let found = try await failure(.replay("")) { simulation in
            let letter = Lock("")
            let read = Lock("")
            for _ in 1...250 { await Task.yield() }
            simulation.spawn("reader") {
                for _ in 1...50 { await Task.yield() }
                read.withLock { $0 = letter.withLock { $0 } }
            }
            simulation.spawn("writer") {
                letter.withLock { $0 = "news" }
            }
            try await simulation.settle()
            for _ in 1...250 { await Task.yield() }
            try simulation.require(read.withLock { $0 } == "news", "the reader read no news")
        }
        let contents = try contents(of: FailurePage(found))
        let (parting, passing) = (try #require(contents.parting), try #require(contents.passing))
        #expect(parting > 220 && parting < found.trace.steps.count - 120, "\(parting)")
        for run in [contents.failing, passing] {
            #expect(run.steps.contains { $0.number == parting } && run.steps.contains { $0.number == parting - 1 })
            #expect(run.steps.count < 350 && run.count.map { $0 > 500 } == true)
        }
    }

    @Test func `is one small file that can load nothing`() async throws {
        let found = try await failure(.exhaustive(), granularity: .accesses, Races.lostUpdate)
        let html = FailurePage(found).html
        #expect(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"))
        #expect(!html.contains("http:") && !html.contains("https:") && !html.contains("src=\"") && !html.contains("@import"))
        #expect(html.utf8.count < 40_000)
    }

    private final class Purse: Sendable {
        let coins = Lock(0)
        let payments = Tally()
    }

    private struct Words: Error, CustomStringConvertible {
        let description: String
    }
}
