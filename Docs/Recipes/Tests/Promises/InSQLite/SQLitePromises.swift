import AccessTokensTesting
import Foundation
import Testing

@testable import InSQLite

@Test(.timeLimit(.minutes(1)))
func `SQLite keeps the promises of a shared store here`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "grants-\(UUID())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "grants.sqlite").path
    let report = try await checkSharedTokenStore(
        (1...2).map { _ in SQLiteTokenStore(database: try SQLiteTokenStore.database(at: path), name: "promises") })
    #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
}
