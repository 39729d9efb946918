import AccessTokensSharing
import Foundation
import GRDB

/// A grant that the processes of one machine share, in a table of a
/// SQLite database.
struct SQLiteTokenStore: SharedTokenStore {
    let database: DatabaseQueue
    let name: String

    /// Opens a database that only this user can read, and makes the
    /// table.
    static func database(at path: String) throws -> DatabaseQueue {
        let file = unsafe open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CocoaError(.fileWriteNoPermission) }
        close(file)
        var configuration = Configuration()
        configuration.busyMode = .timeout(3)  // a service waits 5 s
        let database = try DatabaseQueue(
            path: path, configuration: configuration)
        try database.write { database in
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS grants (
                        name TEXT PRIMARY KEY,
                        revision TEXT NOT NULL, bytes BLOB NOT NULL)
                    """)
        }
        return database
    }

    @concurrent func load() async throws -> SharedRecord? {
        try await database.read { try record(in: $0) }
    }

    /// Reads, compares and replaces in one transaction, which begins with
    /// the lock for writing.
    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        try await database.write { database in
            let known = try record(in: database)
            guard known?.revision == revision else {
                return .conflict(known)
            }
            let new = UUID().uuidString  // no revision is used twice
            try database.execute(
                sql: "INSERT OR REPLACE INTO grants VALUES (?, ?, ?)",
                arguments: [name, new, bytes])
            return .done(.init(new))
        }
    }

    private func record(in database: Database) throws -> SharedRecord? {
        try Row.fetchOne(
            database,
            sql: "SELECT revision, bytes FROM grants WHERE name = ?",
            arguments: [name]
        ).map {
            SharedRecord($0["bytes"], revision: .init($0["revision"]))
        }
    }
}
