import Foundation
import Testing
import TokenServiceConcurrency

@testable import Interleavings
@testable import InterleavingsTesting

/// The pages that a test's failures write into a directory.
@Suite struct `A page for each failure` {
    /// Fails an exploration as a test does, with variables of the environment; returns the report.
    private func report(_ variables: [String: String]) async throws -> String {
        let text = Lock("")
        let collector: IssueHandlingTrait = .compactMapIssues { issue in
            text.withLock { $0 += issue.comments.first?.rawValue ?? "" }
            return nil
        }
        let test = try #require(Test.current)
        try await collector.provideScope(for: test, testCase: nil) {
            let trait = ExplorationTrait(schedules: nil, seed: nil, variables: variables)
            try await trait.provideScope(for: test, testCase: nil) {
                try await explore { simulation in
                    let order = Lock<[Int]>([])
                    for number in 1...2 { simulation.spawn("task \(number)") { order.withLock { $0.append(number) } } }
                    try await simulation.settle()
                    try simulation.require(order.withLock { $0 } == [1, 2], "in order")
                }
            }
        }
        return text.withLock { $0 }
    }

    /// Calls `body` with a directory that doesn't exist yet.
    private func withDirectory(_ body: (URL) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "pages-\(UUID())")
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory)
    }

    @Test func `is a file of its own in the folder that INTERLEAVINGS_PAGE names, and the report says where`() async throws {
        try await withDirectory { directory in
            for number in 1...3 {
                let text = try await report(["INTERLEAVINGS_PAGE": directory.path])
                let path = String(try #require(text.firstMatch(of: /\nA page to walk through: (.*\.html)$/)).1)
                let name = URL(filePath: path).lastPathComponent
                #expect(name.hasPrefix("InterleavingsTestingTests-A-page-for-each-failure.is-a-file"), "\(name)")
                #expect(name.wholeMatch(of: /[\w.-]+/) != nil)
                let page = try String(contentsOfFile: path, encoding: .utf8)
                #expect(page.contains("INTERLEAVINGS_REPLAY='1' swift test"))
                #expect(page.contains("The nearest schedule that passes is \\\"\\\", the usual order."))
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).count == number)
            }
        }
    }

    @Test func `isn't written unless the variable asks for it`() async throws {
        let text = try await report([:])
        #expect(text.contains("failed: in order"))
        #expect(!text.contains("page to walk through"))
    }

    @Test func `leaves the report complete if the page can't be written`() async throws {
        try await withDirectory { directory in
            try Data().write(to: directory)
            let path = "\(directory.path)/pages"
            let (with, without) = (try await report(["INTERLEAVINGS_PAGE": path]), try await report([:]))
            #expect(with.hasPrefix("\(without)\nNo page to walk through: INTERLEAVINGS_PAGE='\(path)' cannot be written to: "))
        }
    }
}
