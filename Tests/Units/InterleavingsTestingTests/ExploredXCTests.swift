import Interleavings
import InterleavingsTesting
import XCTest

#if os(Linux)
/// A test case whose assertions fail schedules.
final class ExploredXCTests: XCTestCase {
    override func recordFailure(withDescription description: String, inFile path: String, atLine line: Int, expected: Bool) {
        if failSchedule(description, at: "\(path):\(line)") { return }
        super.recordFailure(withDescription: description, inFile: path, atLine: line, expected: expected)
    }

    private func failure(_ body: @escaping @Sendable () async throws -> Void) async throws -> ScheduleFailure? {
        do { try await explored(body) } catch let failure as ScheduleFailure { return failure }
        return nil
    }

    func testAMethodThatWaitsPassesInAllSchedules() async throws {
        try await explored {
            let notes = Notes()
            let adding = Task {
                try await Task.sleep(for: .seconds(60), tolerance: .seconds(1))
                await notes.add("done")
            }
            try await adding.value
            let last = await notes.last
            XCTAssertEqual(last, "done")
        }
    }

    func testAnAssertionFailsTheSchedule() async throws {
        let failure = try await failure {
            let notes = Notes()
            Task { await notes.add("done") }
            await Task.yield()
            let last = await notes.last
            XCTAssertEqual(last, "done")
        }
        let text = "\(try XCTUnwrap(failure))"
        XCTAssertTrue(text.contains("XCTAssertEqual failed") && text.contains("test guesses"), text)
    }

    func testAnErrorFailsTheSchedule() async throws {
        struct Mistake: Error {}
        let failure = try await failure { throw Mistake() }
        XCTAssertTrue(failure?.underlying is Mistake)
    }

    @MainActor func testTheMainActorIsDriven() async throws {
        let failure = try await failure { @MainActor in
            let screen = LoadingScreen()
            screen.appear()
            await Task.yield()
            if screen.text != "done" { throw XCTSkip() }
        }
        XCTAssertNotNil(failure)
    }
}
#endif
