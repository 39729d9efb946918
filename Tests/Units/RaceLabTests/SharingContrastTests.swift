import Foundation
import InterleavingsTesting
import TestBudgets
import Testing

@testable import race_lab

@Suite(.unaided) struct `The contrast of ways to share` {
    @Test(.thorough) func `Docs/Sharing.md and the README show the sessions lost that race-lab --sharing counts`() async throws {
        let contrast = try await SharingContrast()
        let page = try String(contentsOf: root.appending(path: "Docs/Sharing.md"), encoding: .utf8)
        #expect(page.contains(contrast.table.lines.joined(separator: "\n")), "\(contrast)")
        let readme = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        for row in contrast.rows {
            let line = "| \(row.design) | \(row.lost.map { "\($0)" }.joined(separator: " | ")) |"
            #expect(readme.contains(line), "\(line)")
        }
    }
}
