import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(1)))
struct TurnLineTests {
    @Test func `a task that is cancelled while it waits leaves the line, and those behind it have their turn`() async throws {
        let line = TurnLine(), isOver = SingleResult<Void>()
        let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            try await line.turn {
                hasBegun.yield()
                try await isOver.value()
                return 1
            }
        }
        _ = await begun.first { true }
        let second = Task { try await line.turn { 2 } }
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        let third = Task { try await line.turn { 3 } }
        isOver.complete(with: .success(()))
        #expect(try await [first.value, third.value] == [1, 3])
    }
}
