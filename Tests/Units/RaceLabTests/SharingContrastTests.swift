import Foundation
import InterleavingsTesting
import TestBudgets
import Testing

@testable import race_lab

@Suite(.unaided) struct `The contrast of ways to share` {
    @Test(.thorough) func `Docs/Sharing.md shows the sessions lost that race-lab --sharing counts`() async throws {
        var texts: [String] = []
        let contrast = try await SharingContrast(print: { texts.append($0) })
        let page = try String(contentsOf: root.appending(path: "Docs/Sharing.md"), encoding: .utf8)
        #expect(page.contains(contrast.table.lines.joined(separator: "\n")), "\(texts)")
        // Into a pipe, too: what is compared, each design when it is done, then the table.
        #expect(texts.first?.hasPrefix("3 processes share a refresh token") == true)
        #expect(texts.dropFirst().dropLast() == SharingDesign.allCases.map(\.name)[...])
        #expect(texts.flatMap(\.tooLong) == [])
    }
}
