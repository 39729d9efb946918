import ChildProcesses
import Dispatch
import Foundation
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Names with characters that are special to a shell or in a regular expression.
///
/// Each test reads the line that its own failure would print.
@Suite(.exploring()) struct `A printed replay line, as of this (very) suite's test + others?` {
    @Test func plain() async throws { try await expectOwnReplay() }
    @Test func plainly() async throws { try await expectOwnReplay() }
    @Test func `class`() async throws { try await expectOwnReplay() }
    @Test("has a name to show (and another to match)") func shown() async throws { try await expectOwnReplay() }
    @Test(arguments: [1, 2]) func numbered(number: Int) async throws { try await expectOwnReplay() }
    @Test(arguments: [1], [true]) func pairs(_ number: Int, and isRight: Bool) async throws { try await expectOwnReplay() }
    @Test(arguments: ["it's"]) func `takes one (or another)`(text: String) async throws { try await expectOwnReplay() }
    @Test func `has spaces`() async throws { try await expectOwnReplay() }
    @Test func `has spaces, and more`() async throws { try await expectOwnReplay() }
    @Test func `doesn't lose an apostrophe, or 'two'`() async throws { try await expectOwnReplay() }
    @Test func `says "so", twice`() async throws { try await expectOwnReplay() }
    @Test func `costs $HOME and $(id) & more; then #`() async throws { try await expectOwnReplay() }
    @Test func `a+b`() async throws { try await expectOwnReplay() }
    @Test func `really? no! (perhaps)`() async throws { try await expectOwnReplay() }
    @Test func `x | y ^ [z] {2} *`() async throws { try await expectOwnReplay() }
    @Test func `1.0 isn't 1x0`() async throws { try await expectOwnReplay() }
    @Test func `goes a/b, up to 100 %`() async throws { try await expectOwnReplay() }
    @Test func `grüßt die Welt, 日本 and 🎉, é too`() async throws { try await expectOwnReplay() }
    @Test func `<angle> = ~tilde, @at`() async throws { try await expectOwnReplay() }

    @Suite struct Inner {
        @Test func plain() async throws { try await expectOwnReplay() }
        @Suite struct `and (inmost)` {
            @Test(arguments: [1]) func `has spaces`(_ number: Int) async throws { try await expectOwnReplay() }
        }
    }
}

@Test(.exploring()) func `A replay line of a test outside all suites (is read, too)`() async throws {
    try await expectOwnReplay()
}

#if os(Linux)
@Suite struct `A replay` {
    @Test func `that matches no test fails, and says so`() async throws {
        let (text, code) = try await run("INTERLEAVINGS_REPLAY='1' swift test --filter 'no such test'")
        #expect(code == 1)
        #expect(text.contains("INTERLEAVINGS_REPLAY is set, but no test replayed it"), "\(text)")
    }

    @Test func `that matches a test passes, and so does a run without one`() async throws {
        let filter = "'^InterleavingsTestingTests.*test outside all suites'"
        for variable in ["INTERLEAVINGS_REPLAY='1'", "UNUSED=1"] {
            let (text, code) = try await run("\(variable) swift test --filter \(filter)")
            #expect(code == 0, "\(text)")
            #expect(text.contains("Test run with 1 test "), "\(text)")
        }
        #expect(try await run("swift test --filter 'no such test'").code != 1)
    }
}
#endif

/// Reads the replay line of the current test as a shell and Swift Testing do; in a thorough run, runs it.
private func expectOwnReplay() async throws {
    // In a run that a printed line started, there is a schedule to replay, and it passes.
    _ = try await explore(.random(schedules: 1)) { simulation in
        for number in 1...2 { simulation.spawn("\(number)") {} }
    }
    guard ProcessInfo.processInfo.environment["INTERLEAVINGS_REPLAY"] == nil else { return }
    let test = try #require(Test.current)
    let line = try await replayLine(of: test)
    let (words, _) = try await shell("swift() { printf '%s\\n' \"$@\"; }; \(line)")
    let filter = try Regex(String(try #require(words.split(separator: "\n").last)))
    let name = "\(test.id)"
    #expect(name.contains(filter), "\(line)")
    let others = ["\(test.name) too", "not \(test.name)"].map { name.replacing(test.name, with: $0) } + ["Other\(name)"]
    #expect(!others.contains { $0.contains(filter) }, "\(line)")
    #if os(Linux)
    guard isThorough else { return }
    let (text, code) = try await run(line)
    #expect(code == 0, "\(line)\n\(text)")
    #expect(text.contains("Test run with 1 test "), "\(line)\n\(text)")
    #endif
}

/// Returns the line that a failure of a test prints.
private func replayLine(of test: Test) async throws -> String {
    let text = Lock("")
    let collector: IssueHandlingTrait = .compactMapIssues { issue in
        text.withLock { $0 += issue.comments.first?.rawValue ?? "" }
        return nil
    }
    try await collector.provideScope(for: test, testCase: nil) {
        let trait: ExplorationTrait = .exploring()
        try await trait.provideScope(for: test, testCase: nil) { try await explore { _ in throw Refusal() } }
    }
    let start = "Or, without editing: "
    return String(try #require(text.withLock { $0 }.split(separator: "\n").first { $0.hasPrefix(start) }).dropFirst(start.count))
}

private struct Refusal: Error {}

/// Runs a line, with this program in place of SwiftPM, which would pass the filter on unchanged.
private func run(_ line: String) async throws -> (text: String, code: Int32) {
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let command = "'\(program)' --testing-library swift-testing --filter "
    let configured = line.replacing("swift test -c release --filter ", with: command, maxReplacements: 1)
    return try await shell("{ \(configured.replacing("swift test --filter ", with: command, maxReplacements: 1)); } 2>&1")
}

/// Runs a shell command on its own thread, because it blocks and the pool has few threads.
private func shell(_ line: String) async throws -> (text: String, code: Int32) {
    try await withCheckedThrowingContinuation { caller in
        DispatchQueue.global().async {
            caller.resume(
                with: Result {
                    let shell = try ChildProcess(URL(filePath: "/bin/sh"), ["-c", line], connecting: .output)
                    let text = String(decoding: try shell[.output].readToEnd() ?? Data(), as: UTF8.self)
                    return (text, shell.waitUntilExit())
                })
        }
    }
}
