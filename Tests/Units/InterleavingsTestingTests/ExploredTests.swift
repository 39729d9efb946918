import Interleavings
import InterleavingsTesting
import Synchronization
import Testing

#if os(Linux)
/// A setting that all tests of a process share.
private final class SharedText: Sendable {
    static let shared = SharedText()
    private let value = Mutex("")

    func store(_ text: String) { value.withLock { $0 = text } }
    func read() -> String { value.withLock { $0 } }
}

@Sendable private func store(_ text: String) async throws {
    SharedText.shared.store(text)
    await Task.yield()
    #expect(SharedText.shared.read() == text)
}

@Suite struct `Tests that are explored together` {
    @Test func `fail if they disturb each other`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await exploreTogether(["one": { try await store("1") }, "two": { try await store("2") }]) {
                SharedText.shared.store("")
            }
        }
        let text = failure.map { "\($0)" } ?? ""
        #expect(text.contains("one") && text.contains("two"), "\(text)")
        #expect(text.contains("try await exploreTogether(replay: \""), "\(text)")
    }

    @Test func `pass if they don't`() async throws {
        try await exploreTogether(["one": { try await store("1") }, "another": { await Task.yield() }]) {
            SharedText.shared.store("")
        }
    }
}

@Suite struct `Generated operations` {
    private struct TooEarly: Error {}

    /// The first task polls up to a thousand times for a line that the other adds.
    private func explore(on machine: MachineModel) async throws {
        try await exploreOperations(
            ["adds", "polls"], programs: .replay("1|0"), schedules: .mixed(schedules: 10), machine: machine,
            of: { _ in Notes() },
            perform: { notes, operation, _ in
                if operation == "adds" { return await notes.add(operation) }
                for _ in 0..<1_000 where await notes.lines.isEmpty { await Task.yield() }
                if await notes.lines.isEmpty { throw TooEarly() }
            }, check: { _ in })
    }

    @Test func `wait longer on a busy machine`() async throws {
        try await explore(on: .fair)
        let failure = await #expect(throws: ScheduleFailure.self) { try await explore(on: .busy) }
        #expect(failure?.underlying is TooEarly)
    }
}
#endif
