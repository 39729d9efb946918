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
            .replacingOccurrences(of: "\n", with: " ")
        let rows = ["read, refresh, write", "30 s lock round all", "TokenService"].compactMap { name in
            contrast.rows.first { $0.design == name }?.lost
        }
        try #require(rows.count == 3)
        let (pauses, kills) = (rows.map { $0[1] }, rows.map { $0[3] })
        #expect(readme.contains("lose \(kills[0]) sessions where each process reads, refreshes and writes, \(kills[1]) under"))
        #expect(readme.contains("30 s, and \(kills[2]) with TokenService. With pauses of 45 s instead they lose"))
        #expect(readme.contains("lose \(pauses[0]), \(pauses[1]) and \(pauses[2]) (`swift run race-lab --sharing`)"))
    }
}
