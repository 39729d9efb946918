import Interleavings
import InterleavingsTesting
import Testing
import TokenServiceConcurrency

#if os(Linux)
/// A flaky test of another project, in our own words, and its right twin.
struct FlakyTest: Sendable, CustomTestStringConvertible {
    typealias Body = @Sendable () async throws -> Void

    /// How the explorer runs both.
    enum Form: Sendable {
        case usual
        /// A sleep is only too short if time moves while work is pending.
        case anytime
        /// With another test at the same time.
        case together(_ reset: @Sendable () async -> Void, Body)
    }

    /// What a report says about it.
    enum Verdict: String, Sendable {
        case guesses = "the test guesses"
        case unclear = "the test or the code"
        case none = "the schedule"
        case unfound = "not found"
    }

    let name: String
    let source: String
    var form = Form.usual
    var verdict = Verdict.guesses
    let flaky: Body
    let right: Body

    var testDescription: String { name }
}

// The code under test.

/// Keeps what it is told.
actor Notes {
    private(set) var lines: [String] = []
    func add(_ line: String) { lines.append(line) }
    var last: String { lines.last ?? "" }
}

/// A model that follows a stream.
actor StatusMirror {
    private(set) var status = ""
    private func set(_ text: String) { status = text }

    nonisolated func follow() -> (AsyncStream<String>.Continuation, Task<Void, Never>) {
        let (stream, continuation) = AsyncStream<String>.makeStream()
        return (continuation, Task { for await text in stream { await self.set(text) } })
    }
}

/// A screen whose loading is a task of its own.
@MainActor final class LoadingScreen {
    private(set) var text = "idle"
    private(set) var task: Task<Void, Never>?

    func appear(loading time: Duration = .zero) {
        task = Task {
            await Self.load(time)
            text = "done"
        }
    }

    @concurrent private static func load(_ time: Duration) async {
        if time > .zero { try? await Task.sleep(for: time) }
    }
}

/// Writes the last of several changes, after a pause.
actor DebouncedFile {
    private(set) var contents = ""
    private(set) var pending: Task<Void, Never>?

    func change(_ text: String, after pause: Duration) {
        pending?.cancel()
        pending = Task {
            try? await Task.sleep(for: pause)
            if !Task.isCancelled { contents = text }
        }
    }

    func stop() { pending?.cancel() }
}

/// A clock of a test: only `advance` ends sleeps.
actor HandClock {
    private var sleepers: [CheckedContinuation<Void, Never>] = []
    private var waiting: (count: Int, CheckedContinuation<Void, Never>)?

    func sleep() async {
        await withCheckedContinuation { sleeper in
            sleepers.append(sleeper)
            guard let (count, waiter) = waiting, sleepers.count >= count else { return }
            waiter.resume()
            waiting = nil
        }
    }

    func advance() {
        for sleeper in sleepers { sleeper.resume() }
        sleepers = []
    }

    /// Waits until some tasks sleep.
    func isArmed(by count: Int = 1) async {
        if sleepers.count < count { await withCheckedContinuation { waiting = (count, $0) } }
    }
}

/// Sends to those who have subscribed by then.
actor Broadcast {
    private var subscribers: [AsyncStream<Int>.Continuation] = []

    func subscribe() -> AsyncStream<Int> {
        let (stream, continuation) = AsyncStream<Int>.makeStream()
        subscribers.append(continuation)
        return stream
    }

    func send(_ value: Int) {
        for subscriber in subscribers {
            subscriber.yield(value)
            subscriber.finish()
        }
    }
}

/// Lets all who ask for a value while it loads share the first one's load.
actor RequestGate {
    private var loading: Task<String, Never>?

    func value(_ load: @escaping @Sendable () async -> String) async -> String {
        let task = loading ?? Task { await load() }
        loading = task
        return await task.value
    }
}

/// Sends what it has unless it is sending.
actor EventQueue {
    private(set) var sent: [String] = []
    private var isSending = false

    func flush(_ name: String, _ send: @Sendable () async -> Void) async {
        guard !isSending else { return }
        isSending = true
        await send()
        sent.append(name)
        isSending = false
    }
}

/// What all tests of a process share.
enum Shared { static let values = Lock<[String: String]>([:]) }

/// The helpers that the projects' tests have.
private func settle(_ most: Int, _ condition: @Sendable () async -> Bool) async {
    for _ in 0..<most where await !condition() { await Task.yield() }
}

private func megaYield() async {
    for _ in 0..<20 { await Task.detached(priority: .background) { await Task.yield() }.value }
}

private func status(_ wait: @Sendable (StatusMirror, Task<Void, Never>) async throws -> Void) async throws {
    let mirror = StatusMirror()
    let (continuation, task) = mirror.follow()
    continuation.yield("downloading")
    continuation.finish()
    try await wait(mirror, task)
    #expect(await mirror.status == "downloading")
}

private func screen(_ time: Duration = .zero, _ wait: @MainActor (LoadingScreen) async throws -> Void) async throws {
    try await onMain(time, wait)
}

@MainActor private func onMain(_ time: Duration, _ wait: @MainActor (LoadingScreen) async throws -> Void) async throws {
    let screen = LoadingScreen()
    screen.appear(loading: time)
    try await wait(screen)
    #expect(screen.text == "done")
}

extension FlakyTest {
    static let all = yielding + polling + sleeping + ordering + starting + disturbing

    private static let yielding = [
        FlakyTest(name: "one yield for a mirrored status", source: "localvoxtral#76") {
            try await status { _, _ in await Task.yield() }
        } right: {
            try await status { _, task in await task.value }
        },
        FlakyTest(name: "a hundred yields, then a requirement", source: "pine#1543") {
            let notes = Notes()
            Task { await notes.add("opened") }
            await settle(100) { await !notes.lines.isEmpty }
            let first = try #require(await notes.lines.first)
            #expect(first == "opened")
        } right: {
            let notes = Notes()
            await Task { await notes.add("opened") }.value
            let first = try #require(await notes.lines.first)
            #expect(first == "opened")
        },
        FlakyTest(name: "yields of tasks in the background", source: "swift-composable-architecture#1369") {
            try await screen { _ in await megaYield() }
        } right: {
            try await screen { await $0.task?.value }
        },
        FlakyTest(name: "a yield for another owner's request", source: "omi#11119") {
            let notes = Notes()
            Task { await notes.add("owner B") }
            await Task.yield()
            #expect(await notes.last == "owner B")
        } right: {
            let notes = Notes()
            let request = Task { await notes.add("owner B") }
            await request.value
            #expect(await notes.last == "owner B")
        },
        FlakyTest(name: "eight yields for a torn-down stream", source: "cmux#6849") {
            let notes = Notes()
            let (stream, continuation) = AsyncStream<Int>.makeStream()
            continuation.onTermination = { _ in Task { await notes.add("torn down") } }
            continuation.finish()
            for await _ in stream {}
            for _ in 0..<8 { await Task.yield() }
            #expect(await notes.last == "torn down")
        } right: {
            let notes = Notes()
            let (stream, continuation) = AsyncStream<Int>.makeStream()
            let (ends, end) = AsyncStream<Void>.makeStream()
            continuation.onTermination = { _ in
                Task {
                    await notes.add("torn down")
                    end.finish()
                }
            }
            continuation.finish()
            for await _ in stream {}
            for await _ in ends {}
            #expect(await notes.last == "torn down")
        },
        FlakyTest(name: "a yield for a refresh to begin", source: "canopy#12", verdict: .unclear) {
            let notes = Notes()
            let refresh = Task { await notes.add("begins") }
            await Task.yield()
            let before = await notes.lines.count
            await notes.add("swapped")
            await refresh.value
            #expect(before == 1)
        } right: {
            let notes = Notes()
            let (begins, begin) = AsyncStream<Void>.makeStream()
            let refresh = Task {
                await notes.add("begins")
                begin.finish()
            }
            for await _ in begins {}
            let before = await notes.lines.count
            await notes.add("swapped")
            await refresh.value
            #expect(before == 1)
        },
    ]

    private static let polling = [
        FlakyTest(name: "a hundred polls that end early", source: "cmux#13903") {
            try await screen { screen in
                for _ in 0..<100 {
                    if screen.text == "done" { break }
                    await Task.yield()
                }
            }
        } right: {
            try await screen { await $0.task?.value }
        },
        FlakyTest(name: "fifty polls of a decoder's entry", source: "EnviousWispr#2143") {
            let notes = Notes()
            let decoding = Task {
                await notes.add("entered")
                await notes.add("left")
            }
            for _ in 0..<50 where await !notes.lines.contains("entered") { await Task.yield() }
            #expect(await notes.lines.first == "entered")
            await decoding.value
        } right: {
            let notes = Notes()
            let (entries, entry) = AsyncStream<Void>.makeStream()
            let decoding = Task {
                await notes.add("entered")
                entry.finish()
                await notes.add("left")
            }
            for await _ in entries {}
            #expect(await notes.lines.first == "entered")
            await decoding.value
        },
        FlakyTest(name: "five hundred yields until a condition", source: "EnviousWispr#2854") {
            let notes = Notes()
            for turn in 1...3 { Task { await notes.add("\(turn)") } }
            await settle(500) { await notes.lines.count == 3 }
            #expect(await notes.lines.count == 3)
        } right: {
            let notes = Notes()
            await withTaskGroup { group in for turn in 1...3 { group.addTask { await notes.add("\(turn)") } } }
            #expect(await notes.lines.count == 3)
        },
        FlakyTest(name: "twenty polls while a model warms up", source: "Rapid-MLX#2538") {
            let (clock, notes) = (HandClock(), Notes())
            let warming = Task {
                await clock.sleep()
                await notes.add("idle")
            }
            await clock.isArmed()
            await clock.advance()
            for _ in 0..<20 where await notes.last != "idle" { await Task.yield() }
            #expect(await notes.last == "idle")
            await warming.value
        } right: {
            let (clock, notes) = (HandClock(), Notes())
            let warming = Task {
                await clock.sleep()
                await notes.add("idle")
            }
            await clock.isArmed()
            await clock.advance()
            await warming.value
            #expect(await notes.last == "idle")
        },
        FlakyTest(name: "polls up to a deadline", source: "cassette#87", form: .anytime) {
            try await screen(.milliseconds(3)) { screen in
                let deadline = ContinuousClock.now + .seconds(30)
                while screen.text != "done", .now < deadline { try await Task.sleep(for: .seconds(10)) }
            }
        } right: {
            try await screen(.milliseconds(3)) { await $0.task?.value }
        },
        FlakyTest(name: "a poll each 50 ms for a file", source: "pine#603", form: .anytime) {
            let file = DebouncedFile()
            for text in ["a", "ab", "abc"] { await file.change(text, after: .milliseconds(20)) }
            for _ in 0..<3 where await file.contents.isEmpty { try await Task.sleep(for: .milliseconds(50)) }
            #expect(await file.contents == "abc")
        } right: {
            let file = DebouncedFile()
            for text in ["a", "ab", "abc"] { await file.change(text, after: .milliseconds(20)) }
            await file.pending?.value
            #expect(await file.contents == "abc")
        },
    ]

    private static let sleeping = [
        FlakyTest(
            name: "100 ms for a window of 10 ms", source: "react-native-audio-browser#104", form: .anytime, verdict: .unclear
        ) {
            try await screen(.milliseconds(10)) { _ in try await Task.sleep(for: .milliseconds(100)) }
        } right: {
            try await screen(.milliseconds(10)) { await $0.task?.value }
        },
        FlakyTest(name: "200 ms for a resolver", source: "react-native-audio-browser#104", form: .anytime) {
            let notes = Notes()
            Task {
                await notes.add("resolved")
                await notes.add("loaded")
            }
            try await Task.sleep(for: .milliseconds(200))
            #expect(await notes.lines == ["resolved", "loaded"])
        } right: {
            let notes = Notes()
            let resolving = Task {
                await notes.add("resolved")
                await notes.add("loaded")
            }
            await resolving.value
            #expect(await notes.lines == ["resolved", "loaded"])
        },
        FlakyTest(name: "50 ms for a consent", source: "muxy#620", form: .anytime) {
            try await status { _, _ in try await Task.sleep(for: .milliseconds(50)) }
        } right: {
            try await status { _, task in await task.value }
        },
        FlakyTest(name: "100 ms for an effect without delay", source: "SwiftRex#169", form: .anytime) {
            let file = DebouncedFile()
            await file.change("5", after: .zero)
            try await Task.sleep(for: .milliseconds(100))
            #expect(await file.contents == "5")
        } right: {
            let file = DebouncedFile()
            await file.change("5", after: .zero)
            await file.pending?.value
            #expect(await file.contents == "5")
        },
        FlakyTest(name: "50 ms before what ends a pause", source: "Biscotti#69", form: .anytime, verdict: .unclear) {
            let file = DebouncedFile()
            await file.change("stopped", after: .milliseconds(5))
            try await Task.sleep(for: .milliseconds(50))
            await file.stop()
            await file.pending?.value
            #expect(await file.contents == "stopped")
        } right: {
            let file = DebouncedFile()
            await file.change("stopped", after: .milliseconds(5))
            await file.pending?.value
            await file.stop()
            #expect(await file.contents == "stopped")
        },
        FlakyTest(name: "eight yields and 60 ms", source: "omi#11706", form: .anytime) {
            let notes = Notes()
            Task.detached { await notes.add("seeded") }
            for _ in 0..<8 { await Task.yield() }
            try await Task.sleep(for: .milliseconds(60))
            #expect(await notes.lines.count == 1)
        } right: {
            let notes = Notes()
            await Task.detached { await notes.add("seeded") }.value
            #expect(await notes.lines.count == 1)
        },
        FlakyTest(
            name: "an upper bound of a retry's time", source: "google-cloud-swift#839", form: .anytime, verdict: .unfound
        ) {
            let start = ContinuousClock.now
            try await Task.sleep(for: .milliseconds(10))
            #expect(start.duration(to: .now) < .milliseconds(20))
        } right: {
            let clock = HandClock()
            let retry = Task { await clock.sleep() }
            await clock.isArmed()
            await clock.advance()
            await retry.value
        },
        FlakyTest(name: "an upper bound beside other timers", source: "bitchat#1491", form: .anytime, verdict: .none) {
            let other = Task { try await Task.sleep(for: .seconds(3)) }
            let start = ContinuousClock.now
            try await Task.sleep(for: .milliseconds(500))
            try await Task.sleep(for: .milliseconds(500))
            #expect(start.duration(to: .now) < .milliseconds(1_400))
            try await other.value
        } right: {
            let file = DebouncedFile()
            await file.change("offline", after: .seconds(1))
            await file.pending?.value
            #expect(await file.contents == "offline")
        },
    ]

    private static let ordering = [
        FlakyTest(name: "a flag that one task sets and another reads", source: "Kingfisher#2457", verdict: .none) {
            let notes = Notes()
            let setting = Task { await notes.add("failed") }
            let reading = Task { #expect(await notes.last == "failed") }
            await setting.value
            await reading.value
        } right: {
            let notes = Notes()
            let setting = Task { await notes.add("failed") }
            let reading = Task {
                await setting.value
                #expect(await notes.last == "failed")
            }
            await reading.value
        },
        FlakyTest(name: "a sleeper of two", source: "CodexBar#1752", verdict: .none) {
            let clock = HandClock()
            let stale = Task { await clock.sleep() }
            let teardown = Task { await clock.sleep() }
            await clock.isArmed()
            await clock.advance()
            await stale.value
            await teardown.value
        } right: {
            let clock = HandClock()
            let stale = Task { await clock.sleep() }
            let teardown = Task { await clock.sleep() }
            await clock.isArmed(by: 2)
            await clock.advance()
            await stale.value
            await teardown.value
        },
        FlakyTest(name: "a value sent before the follower came", source: "swiftui-atom-properties#100", verdict: .none) {
            let broadcast = Broadcast()
            let sending = Task { await broadcast.send(1) }
            for await value in await broadcast.subscribe() { #expect(value == 1) }
            await sending.value
        } right: {
            let broadcast = Broadcast()
            let values = await broadcast.subscribe()
            let sending = Task { await broadcast.send(1) }
            for await value in values { #expect(value == 1) }
            await sending.value
        },
        FlakyTest(name: "a yield for a subscription", source: "apple-browsers#1475", verdict: .none) {
            let broadcast = Broadcast()
            let following = Task { for await value in await broadcast.subscribe() { #expect(value == 1) } }
            await Task.yield()
            await broadcast.send(1)
            await following.value
        } right: {
            let broadcast = Broadcast()
            let values = await broadcast.subscribe()
            let following = Task { for await value in values { #expect(value == 1) } }
            await broadcast.send(1)
            await following.value
        },
        FlakyTest(name: "two tasks in the order of their lines", source: "scyther#80", verdict: .none) {
            let notes = Notes()
            async let pass: Void = notes.add("walk")
            async let transition: Void = notes.add("transition")
            _ = await (pass, transition)
            #expect(await notes.lines == ["walk", "transition"])
        } right: {
            let notes = Notes()
            await notes.add("walk")
            await notes.add("transition")
            #expect(await notes.lines == ["walk", "transition"])
        },
        FlakyTest(name: "a clock that advances before the sleep", source: "Prowl#460", verdict: .none) {
            let (clock, notes) = (HandClock(), Notes())
            let window = Task {
                await clock.sleep()
                await notes.add("flushed")
            }
            await Task.yield()
            await clock.advance()
            await window.value
            #expect(await notes.lines.count == 1)
        } right: {
            let (clock, notes) = (HandClock(), Notes())
            let window = Task {
                await clock.sleep()
                await notes.add("flushed")
            }
            await clock.isArmed()
            await clock.advance()
            await window.value
            #expect(await notes.lines.count == 1)
        },
        FlakyTest(name: "a state that is read after its event", source: "mullvadvpn-app#5447", verdict: .none) {
            let notes = Notes()
            let (states, state) = AsyncStream<String>.makeStream()
            let connecting = Task {
                for text in ["connecting", "connected"] {
                    await notes.add(text)
                    state.yield(text)
                }
            }
            for await text in states where text == "connecting" { break }
            #expect(await notes.last == "connecting")
            await connecting.value
        } right: {
            let notes = Notes()
            let (states, state) = AsyncStream<String>.makeStream()
            let connecting = Task {
                for text in ["connecting", "connected"] {
                    await notes.add(text)
                    state.yield(text)
                }
            }
            for await text in states {
                #expect(text == "connecting")
                break
            }
            await connecting.value
        },
    ]

    private static let starting = [
        FlakyTest(name: "a task that is cancelled at once", source: "EnviousWispr#3035", verdict: .unfound) {
            let assembly = Task { (1...3).prefix { _ in !Task.isCancelled } }
            assembly.cancel()
            #expect(await assembly.value.isEmpty)
        } right: {
            let (starts, start) = AsyncStream<Void>.makeStream()
            let assembly = Task {
                for await _ in starts {}
                return (1...3).prefix { _ in !Task.isCancelled }
            }
            assembly.cancel()
            start.finish()
            #expect(await assembly.value.isEmpty)
        },
        FlakyTest(name: "the first of two requests in the order of their lines", source: "Shelv#45", verdict: .none) {
            let gate = RequestGate()
            async let first = gate.value { "xml" }
            async let second = gate.value { "other" }
            #expect(await [first, second] == ["xml", "xml"])
        } right: {
            let gate = RequestGate(), (begins, begin) = AsyncStream<Void>.makeStream()
            async let first = gate.value {
                begin.finish()
                return "xml"
            }
            for await _ in begins {}
            async let second = gate.value { "other" }
            #expect(await [first, second] == ["xml", "xml"])
        },
        FlakyTest(name: "the first of two flushes in the order of their lines", source: "purchases-ios#3282", verdict: .none) {
            let queue = EventQueue()
            let first = Task { await queue.flush("first") { await Task.yield() } }
            let second = Task { await queue.flush("second") { await Task.yield() } }
            await first.value
            await second.value
            #expect(await queue.sent == ["first"])
        } right: {
            let queue = EventQueue()
            let (begins, begin) = AsyncStream<Void>.makeStream(), (ends, end) = AsyncStream<Void>.makeStream()
            let first = Task {
                await queue.flush("first") {
                    begin.finish()
                    for await _ in ends {}
                }
            }
            for await _ in begins {}
            await queue.flush("second") { await Task.yield() }
            end.finish()
            await first.value
            #expect(await queue.sent == ["first"])
        },
        FlakyTest(name: "a detached task that has begun by now", source: "apple-browsers#3529", verdict: .unclear) {
            let notes = Notes()
            let first = Task.detached { await notes.add("fetched") }
            await Task.yield()
            first.cancel()
            await notes.add("fetched again")
            #expect(await notes.lines == ["fetched", "fetched again"])
        } right: {
            let notes = Notes(), (begins, begin) = AsyncStream<Void>.makeStream()
            let first = Task.detached {
                await notes.add("fetched")
                begin.finish()
            }
            for await _ in begins {}
            first.cancel()
            await notes.add("fetched again")
            #expect(await notes.lines == ["fetched", "fetched again"])
        },
        FlakyTest(name: "a sleep until all requests have begun", source: "WordPress-iOS#24790", form: .anytime) {
            let notes = Notes()
            let requests = (1...3).map { number in Task { await notes.add("\(number)") } }
            try await Task.sleep(for: .milliseconds(100))
            #expect(await notes.lines.count == 3)
            for request in requests { await request.value }
        } right: {
            let notes = Notes(), (begins, begin) = AsyncStream<Int>.makeStream()
            let requests = (1...3).map { number in
                Task {
                    await notes.add("\(number)")
                    begin.yield(number)
                }
            }
            var missing = 3
            for await _ in begins {
                missing -= 1
                if missing == 0 { break }
            }
            #expect(await notes.lines.count == 3)
            for request in requests { await request.value }
        },
    ]

    private static func together(_ name: String, _ source: String, _ key: String) -> FlakyTest {
        FlakyTest(
            name: name, source: source,
            form: .together({ Shared.values.withLock { $0 = [:] } }) {
                Shared.values.withLock { $0 = [:] }
                await Task.yield()
                #expect(Shared.values.withLock { $0[key] == nil })
            }, verdict: .none
        ) {
            Shared.values.withLock { $0[key] = "mine" }
            await Task.yield()
            #expect(Shared.values.withLock { $0[key] == "mine" })
        } right: {
            let values = Lock([key: "mine"])
            await Task.yield()
            #expect(values.withLock { $0[key] == "mine" })
        }
    }

    private static let disturbing = [
        together("a registry that another suite resets", "asc-cli#20", "stream"),
        together("an environment that two suites replace", "wikipedia-ios#5965", "service"),
        together("defaults that two tests write", "nvEnvy#10", "bookmarks"),
    ]
}

/// Runs both forms of a test as a report would.
private struct Trial {
    let test: FlakyTest

    func explore(_ body: @escaping FlakyTest.Body) async throws {
        switch test.form {
        case .usual: try await explored(body)
        case .anytime: try await explored(time: .anytime, body)
        case .together(let reset, let other):
            try await exploreTogether(["one": body, "another": other]) { await reset() }
        }
    }

    /// The first failing schedule; `nil`: none.
    func failure() async throws -> ScheduleFailure? {
        do { try await explore(test.flaky) } catch let failure as ScheduleFailure { return failure }
        return nil
    }

    static func verdict(_ failure: ScheduleFailure?) -> FlakyTest.Verdict {
        guard let failure else { return .unfound }
        let blame = failure.blame ?? ""
        return blame.hasPrefix("This test guesses") ? .guesses : blame.hasPrefix("Either this test") ? .unclear : .none
    }
}

@Suite struct `Flaky tests of others` {
    @Test(arguments: FlakyTest.all) func `are found, and their right twins pass`(test: FlakyTest) async throws {
        let trial = Trial(test: test)
        let start = ContinuousClock.now
        try await explored(schedules: 0, test.right)
        let plain = ContinuousClock.now
        let failure = try await trial.failure()
        let found = ContinuousClock.now
        try await trial.explore(test.right)
        let times = [start.duration(to: plain), plain.duration(to: found), found.duration(to: .now)]
        let verdict = Trial.verdict(failure)
        #if DEBUG
        let isRight = verdict == test.verdict
        #else
        // In optimized code a step may belong to another function, so that a report is more careful.
        let isRight = verdict == test.verdict || verdict == .unclear
        #endif
        #expect(isRight, "\(verdict) \(failure.map { "\($0)" } ?? "")")
        let row: [String] =
            [
                test.name, test.source, failure.map { "\($0.number)" } ?? "–", verdict.rawValue,
            ] + times.map { "\(Int($0 / .milliseconds(1)))" }
        print("| \(row.joined(separator: " | ")) |")
    }
}
#endif
