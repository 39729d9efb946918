import AccessTokensSharing
import Foundation

/// A grant that hosts share, in a table of PostgreSQL.
struct PostgreSQLTokenStore: SharedTokenStore {
    let database: PostgreSQLConnection
    let name: String

    /// The program's user needs only SELECT, INSERT and UPDATE on it.
    static let table = """
        CREATE TABLE IF NOT EXISTS grants (
            name text PRIMARY KEY, revision text NOT NULL,
            bytes bytea NOT NULL, written timestamptz NOT NULL)
        """
    private static let read = """
        SELECT revision, bytes, round(1000 * extract(
            epoch FROM clock_timestamp() - written))::bigint::text
        FROM grants WHERE name = $1
        """
    private static let create = """
        INSERT INTO grants VALUES ($1, $2, $3, clock_timestamp())
        ON CONFLICT DO NOTHING RETURNING revision
        """
    private static let replace = """
        UPDATE grants
        SET revision = $2, bytes = $3, written = clock_timestamp()
        WHERE name = $1 AND revision = $4 RETURNING revision
        """

    @concurrent func load() async throws -> SharedRecord? {
        let row = try await database.row(Self.read, [Data(name.utf8)])
        guard let row, row.count == 3 else { return nil }
        let age = Int(String(decoding: row[2], as: UTF8.self)) ?? 0
        return SharedRecord(
            row[1],
            revision: .init(String(decoding: row[0], as: UTF8.self)),
            age: .milliseconds(max(age, 0)))
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let new = UUID().uuidString  // no revision is used twice
        var values = [Data(name.utf8), Data(new.utf8), bytes]
        if let revision { values.append(Data(revision.text.utf8)) }
        let row = try await database.row(
            revision == nil ? Self.create : Self.replace, values)
        return row == nil
            ? .conflict(try await load()) : .done(.init(new))
    }
}
