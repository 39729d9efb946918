import Foundation
import Interleavings
import InterleavingsEverything
import InterleavingsTesting
import Testing

// The Swift blocks of “Finding flaky tests”, unchanged. The first suite's test is meant to fail, so none runs by itself.

@Suite(.disabled("the guide's own tests run below")) private enum Flaky {
    actor Mirror {
        private(set) var status = ""

        func set(_ text: String) {
            status = text
        }
    }

    @Suite(.explored()) struct MirrorTests {
        @Test func `shows the status`() async throws {
            let mirror = Mirror()
            let (statuses, source) = AsyncStream<String>.makeStream()
            let following = Task { for await status in statuses { await mirror.set(status) } }
            source.yield("downloading")
            for _ in 0..<100 where await mirror.status.isEmpty { await Task.yield() }
            #expect(await mirror.status == "downloading")
            source.finish()
            await following.value
        }
    }

    @Suite(.explored()) struct MendedMirrorTests {
        @Test func `shows the status`() async throws {
            let mirror = Mirror()
            let (statuses, source) = AsyncStream<String>.makeStream()
            let following = Task { for await status in statuses { await mirror.set(status) } }
            source.yield("downloading")
            source.finish()
            await following.value
            #expect(await mirror.status == "downloading")
        }
    }

    actor Setting {
        static let shared = Setting()
        private(set) var name = ""

        func set(_ name: String) { self.name = name }
    }

    struct SettingTests {
        @Test func `sets a name`() async {
            await Setting.shared.set("Anna")
            #expect(await Setting.shared.name == "Anna")
        }

        @Test func clears() async {
            await Setting.shared.set("")
            #expect(await Setting.shared.name.isEmpty)
        }
    }

    struct TogetherTests {
        @Test func `the tests of the setting don't disturb each other`() async throws {
            try await exploreTogether([
                "sets a name": { await SettingTests().`sets a name`() },
                "clears": { await SettingTests().clears() },
            ]) {
                await Setting.shared.set("")
            }
        }
    }
}

/// The blocks of “A museum of flaky tests”.
@Suite(.disabled("the page's own tests run below")) private enum Exhibits {
    actor Inbox {
        private(set) var messages: [String] = []

        func receive(_ message: String) {
            messages.append(message)
        }
    }

    struct Courier {
        let inbox: Inbox

        @discardableResult func send(_ message: String) -> Task<Void, Never> {
            Task { await inbox.receive(message) }
        }
    }

    @Suite(.explored()) struct CourierTests {
        @Test func `a message arrives`() async {
            let inbox = Inbox()
            Courier(inbox: inbox).send("hello")
            await Task.yield()
            #expect(await inbox.messages == ["hello"])
        }
    }

    @Suite(.explored()) struct MendedCourierTests {
        @Test func `a message arrives`() async {
            let inbox = Inbox()
            await Courier(inbox: inbox).send("hello").value
            #expect(await inbox.messages == ["hello"])
        }
    }

    actor Panel {
        private(set) var transport: String?
        nonisolated let connections: AsyncStream<String>
        private let connection: AsyncStream<String>.Continuation

        init() {
            (connections, connection) = AsyncStream.makeStream()
        }

        nonisolated func open() {
            Task { await connect() }
        }

        private func connect() {
            transport = "frames"
            connection.yield("frames")
        }
    }

    @Suite(.explored()) struct PanelTests {
        @Test func `an open panel has a transport`() async {
            let panel = Panel()
            panel.open()
            for _ in 0..<100 {
                if await panel.transport != nil { break }
                await Task.yield()
            }
            #expect(await panel.transport == "frames")
        }
    }

    @Suite(.explored()) struct MendedPanelTests {
        @Test func `an open panel has a transport`() async {
            let panel = Panel()
            panel.open()
            for await _ in panel.connections { break }
            #expect(await panel.transport == "frames")
        }
    }

    actor Draft {
        private(set) var saved = ""
        private(set) var saving: Task<Void, Never>?

        func change(to text: String) {
            saving?.cancel()
            saving = Task {
                try? await Task.sleep(for: .milliseconds(10))
                if !Task.isCancelled { saved = text }
            }
        }
    }

    @Suite(.explored(time: .anytime)) struct DraftTests {
        @Test func `a changed draft is saved`() async throws {
            let draft = Draft()
            await draft.change(to: "Dear Anna")
            try await Task.sleep(for: .milliseconds(100))
            #expect(await draft.saved == "Dear Anna")
        }
    }

    @Suite(.explored(time: .anytime)) struct MendedDraftTests {
        @Test func `a changed draft is saved`() async throws {
            let draft = Draft()
            await draft.change(to: "Dear Anna")
            await draft.saving?.value
            #expect(await draft.saved == "Dear Anna")
        }
    }

    actor Links {
        static let shared = Links()
        private var paths: [String: String] = [:]

        func register(_ path: String, as name: String) { paths[name] = path }
        func path(of name: String) -> String? { paths[name] }
        func reset() { paths = [:] }
    }

    struct PluginTests {
        var links = Links.shared

        func `a plugin's link is listed`() async {
            await links.register("/stream", as: "plugin")
            #expect(await links.path(of: "plugin") == "/stream")
        }
    }

    struct LinksTests {
        var links = Links.shared

        func `no link is listed after a reset`() async {
            await links.reset()
            #expect(await links.path(of: "plugin") == nil)
        }
    }

    struct Together {
        @Test func `the tests of the links don't disturb each other`() async throws {
            try await exploreTogether([
                "lists": { await PluginTests().`a plugin's link is listed`() },
                "resets": { await LinksTests().`no link is listed after a reset`() },
            ]) {
                await Links.shared.reset()
            }
        }
    }

    struct Apart {
        @Test func `the tests of the links don't disturb each other`() async throws {
            try await exploreTogether([
                "lists": { await PluginTests(links: Links()).`a plugin's link is listed`() },
                "resets": { await LinksTests(links: Links()).`no link is listed after a reset`() },
            ])
        }
    }
}

#if os(Linux)
/// A test that fails under some schedule, and what a page says about it.
private struct Report: Sendable, CustomTestStringConvertible {
    let page: String
    let testDescription: String
    let flaky: @Sendable () async throws -> Void
    let mended: @Sendable () async throws -> Void

    static let all = [
        Report(page: "FindingFlakyTests", testDescription: "a hundred yields") {
            try await explored { try await Flaky.MirrorTests().`shows the status`() }
        } mended: {
            try await explored { try await Flaky.MendedMirrorTests().`shows the status`() }
        },
        Report(page: "AMuseumOfFlakyTests", testDescription: "one yield") {
            try await explored { await Exhibits.CourierTests().`a message arrives`() }
        } mended: {
            try await explored { await Exhibits.MendedCourierTests().`a message arrives`() }
        },
        Report(page: "AMuseumOfFlakyTests", testDescription: "a hundred polls") {
            try await explored { await Exhibits.PanelTests().`an open panel has a transport`() }
        } mended: {
            try await explored { await Exhibits.MendedPanelTests().`an open panel has a transport`() }
        },
        Report(page: "AMuseumOfFlakyTests", testDescription: "a sleep that is long enough") {
            try await explored(time: .anytime) { try await Exhibits.DraftTests().`a changed draft is saved`() }
        } mended: {
            try await explored(time: .anytime) { try await Exhibits.MendedDraftTests().`a changed draft is saved`() }
        },
        Report(page: "AMuseumOfFlakyTests", testDescription: "two tests and one registry") {
            try await Exhibits.Together().`the tests of the links don't disturb each other`()
        } mended: {
            try await Exhibits.Apart().`the tests of the links don't disturb each other`()
        },
    ]

    /// Leaves out what differs on a page: the places in the sources, the enclosing types and the wrapping of lines.
    static func condensed(_ text: some StringProtocol) -> String {
        let text = String(text).replacing(#/at\s+\S+\.swift:\d+/#, with: "at a line").replacing(
            #/\b(Exhibits|Flaky)\./#, with: "")
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}

/// What the tests of the guide's table wait for.
private actor Work {
    private(set) var isDone = false

    nonisolated func begin() -> Task<Void, Never> {
        Task { await end() }
    }

    private func end() {
        isDone = true
    }
}

@Suite struct `The pages about flaky tests` {
    @Test(arguments: Report.all)
    private func `show the report of a test, whose mended twin passes`(_ report: Report) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) { try await report.flaky() }
        let page = LinkTests.root.appending(path: "Sources/Interleavings/Interleavings.docc/\(report.page).md")
        let text = try String(contentsOf: page, encoding: .utf8)
        // Up to the legend of the diagram.
        let reported = "\(try #require(failure))".components(separatedBy: "\n✘ ")[0]
        let isShown = Report.condensed(text).contains(Report.condensed(reported))
        #expect(isShown, "not on \(report.page):\n\(reported)")
        try await report.mended()
    }

    private typealias Wait = @Sendable (Work, Task<Void, Never>) async throws -> Void

    private static let waits: KeyValuePairs<String, Wait> = [
        "for the end of the work": { _, task in await task.value },
        "by yielding or polling without a count": { work, _ in while await !work.isDone { await Task.yield() } },
        "by one yield": { _, _ in await Task.yield() },
        "by some hundred yields or polls of an actor": { work, _ in
            for _ in 0..<500 where await !work.isDone { await Task.yield() }
        },
        "by polling with sleeps, up to a deadline on the clock": { work, _ in
            let deadline = ContinuousClock.now + .seconds(30)
            while await !work.isDone, .now < deadline { try await Task.sleep(for: .seconds(10)) }
        },
        "by a sleep that is long enough": { _, _ in try await Task.sleep(for: .seconds(10)) },
    ]

    @Test(arguments: waits.map(\.key)) func `have a table that says which wait fails under which model`(_ name: String)
        async throws
    {
        let page = LinkTests.root.appending(path: "Sources/Interleavings/Interleavings.docc/FindingFlakyTests.md")
        let lines = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
        let row = try #require(lines.first { $0.hasPrefix("| \(name) |") }).split(separator: "|").dropFirst()
        let wait = try #require(Self.waits.first { $0.key == name }?.value)
        let models: [(TimeModel, MachineModel)] = [(.whenIdle, .fair), (.whenIdle, .busy), (.anytime, .busy)]
        #expect(row.count == models.count)
        for (cell, (time, machine)) in zip(row, models) {
            var hasFailed = false
            do {
                try await explored(time: time, machine: machine) {
                    let work = Work()
                    let task = work.begin()
                    try await wait(work, task)
                    #expect(await work.isDone)
                }
            } catch is ScheduleFailure {
                hasFailed = true
            }
            #expect(hasFailed == cell.contains("fails"), "\(name), time \(time), machine \(machine)")
        }
    }

    @Test func `show tests that disturb each other`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await Flaky.TogetherTests().`the tests of the setting don't disturb each other`()
        }
    }
}
#endif
