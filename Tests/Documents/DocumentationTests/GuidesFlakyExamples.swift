import Interleavings
import InterleavingsEverything
import InterleavingsTesting
import Synchronization
import Testing

// The Swift blocks of “Finding flaky tests”, unchanged. The first suite's test is meant to fail, so none runs by itself.

private final class Setting: Sendable {
    static let shared = Setting()
    private let text = Mutex("")

    func set(_ name: String) { text.withLock { $0 = name } }
    func clear() { set("") }
    var name: String { text.withLock { $0 } }
}

private struct SettingTests {
    func setsName() async throws {
        Setting.shared.set("Anna")
        await Task.yield()
        #expect(Setting.shared.name == "Anna")
    }

    func clears() async throws {
        Setting.shared.clear()
        #expect(Setting.shared.name.isEmpty)
    }
}

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

    struct Together {
        @Test func `the tests of the setting don't disturb each other`() async throws {
            try await exploreTogether([
                "sets a name": { try await SettingTests().setsName() },
                "clears it": { try await SettingTests().clears() },
            ]) {
                Setting.shared.clear()
            }
        }
    }
}

#if os(Linux)
@Suite struct `The guide to flaky tests` {
    @Test func `shows a test that guesses, and a repaired one`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explored { try await Flaky.MirrorTests().`shows the status`() }
        }
        let text = failure.map { "\($0)" } ?? ""
        let first = #"Schedule 1 of 200 (mixed, seed 1) failed: Expectation failed: await mirror.status == "downloading""#
        #expect(text.hasPrefix(first), "\(text)")
        try await explored { try await Flaky.MendedMirrorTests().`shows the status`() }
    }

    @Test func `shows tests that interfere with each other`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await Flaky.Together().`the tests of the setting don't disturb each other`()
        }
    }
}
#endif
