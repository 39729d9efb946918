import Foundation
import InterleavingsTesting
import Testing

@testable import race_lab

@Suite(.unaided) struct `The README's table` {
    // The README shows the table of a debug build, as from `swift run`: the optimizer may remove suspensions.
    @Test func `the README's table matches the lab's output, except for the schedules in release builds`() async throws {
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        let table = try await LabRun.usual.value.report.table.lines
        #if DEBUG
        #expect(readme.contains(table.joined(separator: "\n")))
        #else
        for line in table.dropLast(2) { #expect(readme.contains("\n\(line)\n")) }
        #endif
    }
}
