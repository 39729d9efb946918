import Foundation
import InterleavingsTesting
import TestBudgets
import Testing

@testable import race_lab

@Suite(.unaided) struct `The contrast of ways to share` {
    @Test(.thorough) func `Docs/Sharing.md shows the sessions lost that race-lab --sharing counts`() async throws {
        let contrast = try await SharingContrast()
        let page = try String(contentsOf: root.appending(path: "Docs/Sharing.md"), encoding: .utf8)
        #expect(page.contains(contrast.table.lines.joined(separator: "\n")), "\(contrast)")
    }
}
