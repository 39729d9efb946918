import AccessTokensSharing
import Foundation

/// The grants of many keys, in one table of PostgreSQL.
struct PostgreSQLTokenStores: SharedTokenStores {
    /// Each key's operations take turns on one of them.
    let databases: [PostgreSQLConnection]

    private static let limit = 1_000
    private static let page = """
        SELECT json_agg(name ORDER BY name)::text FROM (
            SELECT name FROM grants WHERE $1 = '' OR name > $1
            ORDER BY name LIMIT \(limit)) AS page
        """

    func store(for name: String) -> any SharedTokenStore {
        let sum = name.utf8.reduce(0) { $0 &* 31 &+ UInt($1) }
        let database = databases[Int(sum % UInt(databases.count))]
        return PostgreSQLTokenStore(database: database, name: name)
    }

    @concurrent func forEachStoredKey(
        _ body: @escaping @Sendable (String) -> Void
    ) async throws {
        var names = [""]
        repeat {
            let last = Data((names.last ?? "").utf8)
            let row = try await databases[0].row(Self.page, [last])
            // Empty if there are no names.
            let text = row?.first ?? Data()
            names =
                text.isEmpty
                ? [] : try JSONDecoder().decode([String].self, from: text)
            for name in names { body(name) }
        } while names.count == Self.limit
    }
}
