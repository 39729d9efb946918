import Interleavings
import Testing

@Suite struct `Schedules` {
    @Test(arguments: [("", []), ("0", []), ("0.0", []), ("1", [1]), ("0.2.1", [0, 2, 1]), ("3.0.0", [3])])
    func `are read as they are printed, without trailing zeros`(text: String, choices: [Int]) throws {
        let schedule = try #require(Schedule(text))
        #expect(schedule.choices == choices)
        #expect(Schedule("\(schedule)") == schedule)
    }

    @Test(arguments: ["x", "0.x", "1..2", ".", "-1", "1.-2", " 1", "99999999999999999999", "0.?"])
    func `with invalid text are not read`(text: String) {
        #expect(Schedule(text) == nil)
        // As a schedule to replay, it never fits.
        #expect("\(Schedule(stringLiteral: text))".contains("?"))
    }

    @Test(arguments: ["2", "5", "0.7", "1.1.1.1.1.1.1.1.1", "0.0.0.0.0.0.0.1", "nonsense", "0.?"])
    func `that don't fit the program diverge, and the report says where`(text: String) async throws {
        let found = try await failure(.replay(text), twoTasksUnawaited(jobs: 2, orders: Journal()))
        #expect(found.problem?.code == .divergence)
        #expect(found.problem?.detail.contains("choice") == true)
        #expect("\(found)".contains("debug or release"))
    }

    @Test func `that fit the program are replayed, and the empty one is the first of all`() async throws {
        let orders = Journal()
        for schedule in ["", "1", "0.1", "1.1"] {
            try await explore(.replay(schedule), twoTasksUnawaited(jobs: 2, orders: orders))
        }
        #expect(orders.count == 8)
        #expect(orders.all[0] == "aabb")
        #expect(Set(orders.all).count == 4)
    }

    @Test func `that fail in another way than before are still failures`() async throws {
        let found = try await failure(.replay("9")) { _ in throw Stop() }
        #expect(found.underlying is Stop)
    }
}
