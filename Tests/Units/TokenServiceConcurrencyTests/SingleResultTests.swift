import Testing
import TokenServiceConcurrency

@Suite struct `A single result` {
    private struct Failure: Error {}

    @Test func `is the first completion, whether the task already waits or not`() async throws {
        let early = SingleResult<Int>()
        early.complete(with: .success(1))
        early.complete(with: .success(2))
        #expect(try await early.value() == 1)

        let late = SingleResult<Int>()
        let waiter = Task { try await late.value() }
        late.complete(with: .failure(Failure()))
        late.complete(with: .success(2))
        await #expect(throws: Failure.self) { try await waiter.value }
    }

    @Test func `wakes its task under any interleaving of completions from many threads`() async throws {
        for _ in 1...100 {
            let result = SingleResult<Int>()
            let value = try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...4 { group.addTask { result.complete(with: .success(number)) } }
                return try await result.value()
            }
            #expect((1...4).contains(value))
        }
    }
}
