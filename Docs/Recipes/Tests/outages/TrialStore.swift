import AccessTokensEtcd
import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation

@testable import InPostgreSQL
@testable import InSQLite
@testable import InValkey

/// A store as a trial's processes open it, and what can be done to its server.
struct TrialStore: Sendable {
    let kind: String
    /// The trial's folder; its last component is the record's name.
    let folder: String

    private static let environment = ProcessInfo.processInfo.environment
    static let kinds = ["files", "sqlite", "postgresql", "valkey", "etcd"].filter { kind in
        switch kind {
        case "postgresql", "valkey": environment["RECIPES_\(kind.uppercased())_PORT"] != nil
        case "etcd": environment["ETCD_ENDPOINTS"] != nil
        default: true
        }
    }

    /// Whether its server's clock can be set, and writes refused.
    var hasSettings: Bool { kind == "postgresql" }
    var hasServer: Bool { !["files", "sqlite"].contains(kind) }
    private var name: String { URL(fileURLWithPath: folder).lastPathComponent }
    private func port(_ name: String) -> String { Self.environment["RECIPES_\(name)_PORT"] ?? "0" }

    func opened() throws -> any SharedTokenStore {
        switch kind {
        case "sqlite": return SQLiteTokenStore(database: try SQLiteTokenStore.database(at: folder + "/database"), name: name)
        case "postgresql": return PostgreSQLTokenStore(database: postgreSQL("app", "app-password-Vu73kQx2"), name: name)
        case "valkey":
            return ValkeyTokenStore(
                database: ValkeyConnection(
                    host: "127.0.0.1", port: Int32(port("VALKEY")) ?? 0, user: ("app", "app-password-Vu73kQx2")),
                key: "tokens:\(name)")
        case "etcd":
            let urls = Self.environment["ETCD_ENDPOINTS", default: ""].split(separator: ",").compactMap {
                URL(string: String($0))
            }
            return try EtcdTokenStore(key: "/tokens/" + name, endpoints: urls, allowsPlainHTTP: true)
        default: return SharedFileTokenStore(path: folder + "/record")
        }
    }

    private func postgreSQL(_ user: String, _ password: String) -> PostgreSQLConnection {
        PostgreSQLConnection([
            "host": "127.0.0.1", "port": port("POSTGRESQL"), "dbname": "recipes", "user": user, "password": password,
            "application_name": name,
        ])
    }
    private var administrator: PostgreSQLConnection {
        postgreSQL("admin", Self.environment["RECIPES_PASSWORD", default: ""])
    }

    /// Makes the table, and a clock that can be set for each trial.
    func prepare() async throws {
        guard kind == "postgresql" else { return }
        for statement in [
            PostgreSQLTokenStore.table, "GRANT SELECT, INSERT, UPDATE ON grants TO app",
            "CREATE SCHEMA IF NOT EXISTS stepped",
            "CREATE TABLE IF NOT EXISTS stepped.clocks (name text PRIMARY KEY, seconds integer NOT NULL)",
            """
            CREATE OR REPLACE FUNCTION stepped.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
                SELECT pg_catalog.clock_timestamp() + make_interval(secs => coalesce(
                    (SELECT seconds FROM stepped.clocks WHERE name = current_setting('application_name')), 0)) $$
            """,
            "GRANT USAGE ON SCHEMA stepped TO app", "GRANT SELECT ON stepped.clocks TO app",
            "ALTER ROLE app SET search_path = stepped, pg_catalog, public",
        ] { _ = try await administrator.row(statement, []) }
    }

    /// Sets the clock by which the server tells ages, for this trial.
    func stepClock(by seconds: Int) async throws {
        _ = try await administrator.row("INSERT INTO stepped.clocks VALUES ($1, \(seconds))", [Data(name.utf8)])
    }

    func allowWrites(_ isAllowed: Bool) async throws {
        _ = try await administrator.row(
            isAllowed ? "GRANT INSERT, UPDATE ON grants TO app" : "REVOKE INSERT, UPDATE ON grants FROM app", [])
    }

    /// Stops the server, or lets it go on.
    func signal(_ signal: String) throws {
        let script = kind == "etcd" ? "ETCD_SCRIPT" : "RECIPES_SERVERS_SCRIPT"
        let directory = kind == "etcd" ? "ETCD_DIR" : "RECIPES_SERVERS"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.environment[script, default: ""])
        process.arguments = ["signal", Self.environment[directory, default: ""], kind == "etcd" ? "0" : kind, signal]
        try process.run()
        process.waitUntilExit()
    }
}
