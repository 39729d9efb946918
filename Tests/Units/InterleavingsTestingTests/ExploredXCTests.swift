import Interleavings
import InterleavingsTesting
import XCTest

#if os(Linux)
class ExploredTestCase: XCTestCase, @unchecked Sendable {
    /// An expectation for which a task waits; XCTest itself would keep a thread waiting.
    final class Event: XCTestExpectation, @unchecked Sendable {
        private let (fulfilments, fulfilment) = AsyncStream<Void>.makeStream()

        override func fulfill(_ file: StaticString = #file, line: Int = #line) {
            super.fulfill(file, line: line)
            fulfilment.yield()
        }

        func happens() async -> Bool {
            var count = expectedFulfillmentCount
            for await _ in fulfilments {
                count -= 1
                if count == 0 { return true }
            }
            return false
        }
    }

    func expectation(description: String) -> Event {
        Event(description: description)
    }

    func fulfillment(of events: [Event], timeout: TimeInterval) async {
        let waiting = Task { () -> Event? in
            for event in events where await !event.happens() { return event }
            return nil
        }
        let limit = Task {
            try await Task.sleep(for: .seconds(timeout))
            waiting.cancel()
        }
        let missing = await waiting.value
        limit.cancel()
        if let missing { XCTFail("not fulfilled: \(missing.expectationDescription)") }
    }

    override func recordFailure(withDescription text: String, inFile file: String, atLine line: Int, expected: Bool) {
        if failSchedule(text, at: "\(file):\(line)") { return }
        super.recordFailure(withDescription: text, inFile: file, atLine: line, expected: expected)
    }
}

final class ExploredXCTests: ExploredTestCase, @unchecked Sendable {
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

    func testAnExpectationIsAwaited() async throws {
        try await explored {
            let opened = self.expectation(description: "opened")
            Task { opened.fulfill() }
            await self.fulfillment(of: [opened], timeout: 1)
        }
    }

    func testAMissedExpectationFailsTheSchedule() async throws {
        let failure = try await failure {
            let opened = self.expectation(description: "opened")
            await self.fulfillment(of: [opened], timeout: 1)
        }
        let text = "\(try XCTUnwrap(failure))"
        XCTAssertTrue(text.contains("not fulfilled: opened"), text)
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
