import Foundation
import Interleavings
import InterleavingsTesting
import RaceGallery
import TestBudgets
import Testing

@Suite(.unaided) struct `The museum's page` {
    #if DEBUG
    /// Everyday runs check six exhibits; CI checks all of them each night.
    @Test func `Docs/Museum.md has the table that the exhibits give, or the page says how to renew it`()
        async throws
    {
        let root = (0..<4).reduce(URL(filePath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let page = try String(contentsOf: root.appending(path: "Docs/Museum.md"), encoding: .utf8)
        let exhibits = isThorough ? Exhibit.all : Array(Exhibit.all.shuffled().prefix(6))
        let text = try await MuseumPage.text(of: exhibits)
        let table = try #require(text.split(separator: "\n\(MuseumPage.diagramsHeading)\n").first)
        let lines = page.split(separator: "\n")
        let missing = (table + "\n").split(separator: "\n").filter { !lines.contains($0) }
        #expect(missing == [], "of exhibits \(exhibits.map(\.number))")
        let isWhole = page == table + "\n"
        #expect(isWhole || !isThorough, "\(lines.filter { !table.contains($0) }.prefix(3)) are of no exhibit")
    }
    #endif

    @Test func `the museum's page has a row and a diagram for each exhibit`() async throws {
        let exhibits = Array(Exhibit.all[15..<18])
        let lines = try await MuseumPage.text(of: exhibits).split(separator: "\n")
        let rows = lines.filter { $0.hasPrefix("| 1") }
        #expect(rows.count == 3)
        #expect(zip(rows, exhibits).allSatisfy { $0.contains("| \($1.number) |") && $0.contains($1.source) })
        #expect(lines.count { $0 == "```text" } == 3)
    }
}
