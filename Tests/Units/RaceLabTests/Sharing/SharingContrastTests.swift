import Foundation
import InterleavingsTesting
import TestBudgets
import Testing

@testable import race_lab

@Suite(.unaided) struct `The contrast of ways to share` {
    @Test(.thorough) func `Docs/Sharing.md shows the sessions that each way to share loses`() async throws {
        let contrast = try await SharingContrast()
        let page = try String(contentsOf: root.appending(path: "Docs/Sharing.md"), encoding: .utf8)
        #expect(page.contains(contrast.table.lines.joined(separator: "\n")), "\(contrast.table.lines)")
    }
}
