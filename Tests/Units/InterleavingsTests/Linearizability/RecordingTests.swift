import Interleavings
import Synchronization
import Testing

@Suite struct `Recording a history` {
    struct Refused: Error, Equatable {}

    actor Tally {
        var value = 0

        func increment() -> Int {
            value += 1
            return value
        }
    }

    @Test func `works from tasks on all threads that call an actor`() async throws {
        for _ in 0..<20 {
            let (history, tally) = (History(Counter()), Tally())
            await withDiscardingTaskGroup { group in
                for caller in 0..<4 {
                    group.addTask {
                        for _ in 0..<25 { await history.record("caller \(caller)", .increment) { await tally.increment() } }
                    }
                }
            }
            #expect(history.count == 100)
            try history.requireLinearizable()
        }
    }

    @Test func `works from synchronous code that uses an atomic`() async throws {
        func count(_ history: History<Counter>, _ caller: String, _ value: borrowing Atomic<Int>) {
            history.record(caller, .increment) { value.add(1, ordering: .relaxed).newValue }
            history.record(caller, .read) { value.load(ordering: .relaxed) }
        }
        final class Shared: Sendable { let value = Atomic(0) }
        for _ in 0..<20 {
            let (history, shared) = (History(Counter()), Shared())
            await withDiscardingTaskGroup { group in
                for caller in 0..<4 {
                    group.addTask { for _ in 0..<10 { count(history, "caller \(caller)", shared.value) } }
                }
            }
            #expect(history.count == 80)
            try history.requireLinearizable()
        }
    }

    @Test(arguments: [0, 1])
    func `rethrows a call's error, and the call may have taken effect or not`(seen: Int) async throws {
        let history = History(Counter())
        await #expect(throws: Refused.self) {
            try await history.record("a", .increment) { () async throws(Refused) in throw Refused() }
        }
        #expect(throws: Refused.self) {
            try history.record("b", .increment) { () throws(Refused) in throw Refused() }
        }
        history.record("c", .read) { seen }
        history.record("c", .read) { 2 }
        try history.requireLinearizable()
        history.record("c", .read) { 1 }
        #expect(throws: NotLinearizable.self) { try history.requireLinearizable() }
    }

    @Test func `takes an error that its body turns into an outcome as an answer`() async throws {
        let history = History(Register())
        history.record("a", .write(3)) { nil }
        #expect(throws: Refused.self) {
            try history.record("b", .write(4)) { () throws(Refused) in throw Refused() }
        }
        func refuseLater() async throws(Refused) -> Int { throw Refused() }
        let answer = await history.record("b", .read) {
            do { return try await refuseLater() } catch { return 4 }
        }
        #expect(answer == 4)
        try history.requireLinearizable()
        history.record("c", .read) { 3 }
        #expect(throws: NotLinearizable.self) { try history.requireLinearizable() }
    }

    @Test @MainActor func `runs a body on its caller's actor`() async {
        var local = 0
        let history = History(Counter())
        await history.record("a", .increment) {
            await Task.yield()
            MainActor.assertIsolated()
            local += 1
            return local
        }
        #expect(history.check().isLinearizable)
    }
}
