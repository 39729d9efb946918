import AccessTokensTesting
import Foundation
import Testing

@testable import InPostgreSQL

/// Uses the database that libpq finds through the environment.
///
/// Its variables are `PGHOST`, `PGDATABASE`, `PGUSER`, `PGPASSWORD` and others. The user must be allowed to create the table, if
/// there is none.
@Test(.enabled(if: ProcessInfo.processInfo.environment["PGHOST"] != nil, "set PGHOST and others"), .timeLimit(.minutes(1)))
func `your PostgreSQL keeps the promises of a shared store`() async throws {
    _ = try await PostgreSQLConnection([:]).row(PostgreSQLTokenStore.table, [])
    let name = UUID().uuidString
    let report = try await checkSharedTokenStore(
        (1...2).map { _ in PostgreSQLTokenStore(database: PostgreSQLConnection([:]), name: name) })
    #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
}
