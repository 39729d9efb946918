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
    @Test func `fail if they interfere with each other`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await exploreTogether(["one": { try await store("1") }, "two": { try await store("2") }]) {
                SharedText.shared.store("")
            }
        }
        let text = failure.map { "\($0)" } ?? ""
        #expect(text.contains("one") && text.contains("two"), "\(text)")
        #expect(text.contains("try await exploreTogether(replay: \""), "\(text)")
    }

    @Test func `pass if they don't interfere with each other`() async throws {
        try await exploreTogether(["one": { try await store("1") }, "another": { await Task.yield() }]) {
            SharedText.shared.store("")
        }
    }
}
#endif
