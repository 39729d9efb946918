import Interleavings
import InterleavingsTesting
import Testing

#if os(Linux)
/// Returns its value from a load that it doesn't share.
private actor UnsharedCache {
    private(set) var loads = 0
    private var value: Int?

    func get() async -> Int {
        if let value { return value }
        await Task.yield()
        loads += 1
        value = loads
        return loads
    }
}

/// Loses an increment while another waits.
@MainActor private final class LossyCounter {
    private(set) var value = 0

    func increment() async {
        let before = value
        await Self.pause()
        value = before + 1
    }

    @concurrent private static func pause() async { await Task.yield() }
}

/// Returns before it has saved.
private actor HastyStore {
    private(set) var saved = ""
    private func write(_ text: String) { saved = text }

    nonisolated func save(_ text: String) async {
        await Task.yield()
        Task { await self.write(text) }
    }
}

/// Returns what the report of a test's failure says about its cause.
private func blame(of body: @escaping @Sendable () async throws -> Void) async throws -> String? {
    let failure = await #expect(throws: ScheduleFailure.self) { try await explored(body) }
    return try #require(failure).blame
}

@Suite struct `A report of a flaky test` {
    @Test func `names the yield, the task that has not begun and the remedy`() async throws {
        let line = #line + 4
        let own = try await blame {
            let notes = Notes()
            let adding = Task { await notes.add("done") }
            await Task.yield()
            #expect(await notes.last == "done")
            await adding.value
        }
        let place = "InterleavingsTestingTests/GuessTests.swift:"
        let text = try #require(own)
        let head = "This test guesses: at \(place)\(line) it goes on after a yield, but 'test.1' (closure #1 in"
        #expect(text.hasPrefix(head), "\(text)")
        #expect(text.contains(" at \(place)\(line - 1)) has not begun."), "\(text)")
        #expect(text.contains("Await that task's value. If a schedule still fails then, the code is wrong."), "\(text)")
    }

    @Test func `names the function of the code that begins the task`() async throws {
        let text = try await blame {
            let mirror = StatusMirror()
            let (continuation, following) = mirror.follow()
            continuation.yield("downloading")
            for _ in 0..<100 where await mirror.status.isEmpty { await Task.yield() }
            #expect(await mirror.status == "downloading")
            continuation.finish()
            await following.value
        }
        #expect(text?.contains("Await what StatusMirror.follow() begins: let it return the task") == true, "\(text ?? "")")
    }

    @Test func `doesn't say that a test guesses which awaits all`() async throws {
        let text = try await blame { @MainActor in
            let counter = LossyCounter()
            async let one: Void = counter.increment()
            async let two: Void = counter.increment()
            _ = await (one, two)
            #expect(counter.value == 2)
        }
        #expect(text?.lowercased().contains("this test guesses") != true, "\(text ?? "")")
    }

    @Test func `doesn't say that a test guesses which calls wrong code while another call runs`() async throws {
        let text = try await blame {
            let cache = UnsharedCache()
            let other = Task { await cache.get() }
            await Task.yield()
            _ = await cache.get()
            #expect(await cache.loads == 1)
            _ = await other.value
        }
        #if DEBUG
        #expect(text?.lowercased().contains("this test guesses") != true, "\(text ?? "")")
        #else
        // In optimized code a step may belong to another function, so that the report leaves open which of the two it is.
        #expect(text?.hasPrefix("This test guesses") != true, "\(text ?? "")")
        #endif
    }

    @Test func `says how to find out if the code returns early`() async throws {
        let text = try await blame {
            let store = HastyStore()
            await store.save("text")
            let saved = await store.saved
            #expect(saved == "text")
        }
        #expect(text?.hasPrefix("Either this test guesses, or the code is done too late: at ") == true, "\(text ?? "")")
        #expect(text?.contains("To find out, await there what HastyStore.save(_:) begins") == true, "\(text ?? "")")
    }
}
#endif
