import Foundation
import Testing

@testable import race_lab

@Suite struct `The README's table` {
    // The README shows a debug build's, as `swift run` makes it: the optimizer may remove suspensions.
    @Test func `the README's table is what the lab prints, in a release build but for the schedules`() async throws {
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let sections = try await SimulationReport(callers: 100).description.components(separatedBy: "\n\n")
        #if DEBUG
        #expect(readme.contains(sections[1]))
        #else
        for line in sections[1].split(separator: "\n").dropLast(2) { #expect(readme.contains("\n\(line)\n")) }
        #endif
    }
}
