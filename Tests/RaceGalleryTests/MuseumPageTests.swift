import Foundation
import Interleavings
import RaceGallery
import Testing

@Suite("The museum's page")
struct MuseumPageTests {
    #if DEBUG
    @Test("says what the exhibits say now; if not: swift run race-lab --museum > Docs/Museum.md")
    func isCurrent() async throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "Docs/Museum.md"), encoding: .utf8)
        let current = try await MuseumPage.text() + "\n"
        let difference = current.split(separator: "\n").difference(from: page.split(separator: "\n"))
        #expect(page == current, "\(difference.insertions.prefix(3)) in place of \(difference.removals.prefix(3))")
    }
    #endif

    @Test("has a row for each exhibit, and a diagram where something was found")
    func rows() async throws {
        let exhibits = Array(Exhibit.secondHalf.prefix(3))
        let lines = try await MuseumPage.text(of: exhibits).split(separator: "\n")
        let rows = lines.filter { $0.hasPrefix("| 1") }
        #expect(rows.count == 3)
        #expect(zip(rows, exhibits).allSatisfy { $0.contains("| \($1.number) |") && $0.contains($1.source) })
        #expect(lines.count { $0 == "```text" } == 3)
    }
}
