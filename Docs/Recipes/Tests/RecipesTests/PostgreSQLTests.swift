import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing

@testable import InPostgreSQL

@Suite(
    .enabled(if: TestServer("postgresql") != nil, "start a PostgreSQL with Docs/Recipes/run"), .serialized,
    .timeLimit(.minutes(5)))
struct `A grant in PostgreSQL` {
    let server: TestServer

    static let password = "app-password-Vu73kQx2"

    static func database(
        _ user: String = "app", _ password: String = password, in name: String = "recipes", port: Int32? = nil,
        attributes: String = "read-write"
    ) -> PostgreSQLConnection {
        PostgreSQLConnection([
            "host": "127.0.0.1", "port": "\(port ?? TestServer("postgresql")?.port ?? 0)", "dbname": name, "user": user,
            "password": password, "target_session_attrs": attributes,
        ])
    }

    static func store(_ name: String) -> PostgreSQLTokenStore { PostgreSQLTokenStore(database: database(), name: name) }

    /// Made once, by the administrator.
    static let table = Task {
        guard let server = TestServer("postgresql") else { return }
        let admin = database("admin", server.password)
        for statement in [
            PostgreSQLTokenStore.table, "GRANT SELECT, INSERT, UPDATE ON grants TO app", "GRANT SELECT ON grants TO reader",
        ] {
            _ = try await admin.row(statement, [])
        }
    }

    init() async throws {
        server = try #require(TestServer("postgresql"))
        try await Self.table.value
    }

    @Test func `the store keeps every promise of a shared store, and tells ages by the server's clock`() async throws {
        let name = UUID().uuidString
        try await checkPromises([Self.store(name), Self.store(name)])
    }

    @Test func `the stores name each of many keys, and sign an account out through any of them`() async throws {
        let prefix = UUID().uuidString
        _ = try await Self.database("admin", server.password).row(
            "INSERT INTO grants SELECT $1 || n, 'r', '', now() FROM generate_series(1, 2500) AS n", [Data(prefix.utf8)])
        let stores = PostgreSQLTokenStores(databases: (1...3).map { _ in Self.database() })
        let names = try await stores.storedKeys().filter { $0.hasPrefix(prefix) }
        #expect(names.count == 2500 && Set(names).count == 2500)
        try await checkSignOut(in: stores, named: prefix)
    }

    @Test func `a rotation takes two requests`() async throws {
        let name = UUID().uuidString
        try await checkRequests(
            server.name, alone: Self.store(name), together: (1...4).map { _ in Self.store(name + "-shared") })
    }

    @Test func `no replacement of several processes is lost`() async throws {
        let name = UUID().uuidString
        try await countInProcesses(Self.store(name)) {
            await #expect(processExitsWith: .success) { [name = name as String] in try await count(50, in: Self.store(name)) }
        }
    }

    @Test func `a process that is killed leaves a record that others can replace`() async throws {
        let name = UUID().uuidString
        try await countAfterKills(Self.store(name)) {
            await #expect(processExitsWith: .signal(SIGKILL)) { [name = name as String] in
                try await countUntilKilled(in: Self.store(name))
            }
        }
    }

    @Test func `while the server is killed, nothing that it has acknowledged is lost`() async throws {
        let name = UUID().uuidString
        try await checkDuringCrashes(of: server, [Self.store(name), Self.store(name)])
    }

    @Test func `while the server is killed, no session is lost without a reason`() async throws {
        let name = UUID().uuidString
        let unexplained = try await rotateDuringCrashes(of: server, (1...3).map { _ in Self.store(name) })
        #expect(unexplained.isEmpty)
    }

    @Test func `each session that is lost while clients are killed was lost by one of them`() async throws {
        let name = UUID().uuidString
        let unexplained = try await killClients(Self.store(name), kills: 12) { ledger in
            await #expect(processExitsWith: .signal(SIGKILL)) { [ledger = ledger as String, name = name as String] in
                try await work(in: Self.store(name), with: ledger)
            }
        }
        #expect(unexplained.isEmpty)
    }

    @Test func `a server that is stopped is an error, and blocks none of Swift's own threads`() async throws {
        let stores = (1...8).map { _ in Self.store("\(UUID())") }
        for store in stores { _ = try await store.load() }
        try await server.restoring {
            try await server.signal("STOP")
            #expect(try await threadsAreFree(during: stores.map { store in { _ = try await store.load() } }))
        }
    }

    @Test func `a connection that the server has ended is made again`() async throws {
        let store = Self.store("\(UUID())")
        try await count(1, in: store)
        try await server.restart()
        try await count(1, in: store)
        #expect(try await number(in: store) == 2)
    }

    @Test func `what keeps a record from being read or written is an error that shows no secret`() async throws {
        let name = UUID().uuidString, record = Data("secret".utf8)
        _ = try await Self.store(name).swap(record, ifAt: nil)
        func error(_ database: PostgreSQLConnection) async -> PostgreSQLError? {
            let store = PostgreSQLTokenStore(database: database, name: name)
            let error = await #expect(throws: PostgreSQLError.self) { try await store.swap(record, ifAt: store.load()?.revision) }
            #expect(!"\(String(reflecting: error))".contains("secret") && !"\(String(reflecting: error))".contains("password-"))
            return error
        }
        let missing = await error(Self.database(in: "postgres"))
        #expect(missing?.code == "42P01" && missing?.description == #"relation "grants" does not exist"#)
        let reader = await error(Self.database("reader", "reader-password-9dLw"))
        #expect(reader?.code == "42501" && reader?.description == "permission denied for table grants")
        let wrong = await error(Self.database("app", "wrong' password-"))
        #expect(wrong?.description.contains(#"password authentication failed for user "app""#) == true)
        let gone = await error(Self.database(port: 1))
        #expect(gone?.description.contains("Connection refused") == true)
        #expect(try await Self.store(name).load()?.bytes == record)
    }

    @Test func `a failover with asynchronous replication that loses a rotation ends the session`() async throws {
        let name = UUID().uuidString, follower = try #require(TestServer("standby"))
        let successor = PostgreSQLTokenStore(database: Self.database(port: follower.port, attributes: "any"), name: name)
        try await follower.renew()
        try await failOver(from: server, to: follower, Self.store(name), successor) { try await successor.load()?.bytes }
    }

    @Test(arguments: [false, true])
    func `a failover to a synchronous standby loses no rotation, also while the old server still runs`(isEarly: Bool) async throws
    {
        let name = UUID().uuidString, follower = try #require(TestServer("standby"))
        let admin = Self.database("admin", server.password)
        try await follower.renew()
        // Not before it is copied, or the standby would wait for one of its own.
        _ = try await admin.row("ALTER SYSTEM SET synchronous_standby_names = '*'", [])
        _ = try await admin.row("SELECT pg_reload_conf()", [])
        while try await admin.row("SELECT sync_state FROM pg_stat_replication", []) != [Data("sync".utf8)] {}
        let outcome = await Task {
            try await rotateDuringFailover(
                from: server, to: follower, isEarly: isEarly, (1...3).map { _ in Self.store(name) },
                (1...3).map { _ in PostgreSQLTokenStore(database: Self.database(port: follower.port), name: name) })
        }.result
        _ = try await admin.row("ALTER SYSTEM RESET synchronous_standby_names", [])
        _ = try await admin.row("SELECT pg_reload_conf()", [])
        #expect(try outcome.get() == 0)
    }

    @Test func `a server that is too old is an error that says so`() async throws {
        func message(_ type: Character, _ content: String) -> [UInt8] {
            let bytes = Array(content.utf8)
            return [type.asciiValue ?? 0, 0, 0, 0, UInt8(bytes.count + 4)] + bytes
        }
        let hello = message("R", "\0\0\0\0") + message("S", "server_version\09.4.26\0") + message("Z", "I")
        let old = try AnsweringServer([hello])
        let database = PostgreSQLConnection([
            "host": "127.0.0.1", "port": "\(old.port)", "user": "app", "sslmode": "disable", "gssencmode": "disable",
            "target_session_attrs": "any",
        ])
        let error = await #expect(throws: PostgreSQLError.self) {
            try await PostgreSQLTokenStore(database: database, name: "reports").load()
        }
        #expect(error?.description == "PostgreSQL 9.5 or newer is needed.")
    }
}

/// The sample of the guide.
private func makeService(loader: some TokenLoader) -> TokenService {
    let database = PostgreSQLConnection([
        "host": "db.example", "dbname": "reports", "user": "reports",
        "sslmode": "verify-full",
    ])
    let tokens = TokenService(
        sharedStore: PostgreSQLTokenStore(
            database: database, name: "reports"),
        loader: loader)
    return tokens
}

private func makeServices(settings: [String: String], makeLoader: @escaping @Sendable (String) throws -> any TokenLoader)
    -> TokenServices<String>
{
    let stores = PostgreSQLTokenStores(
        databases: (1...4).map { _ in PostgreSQLConnection(settings) })
    let services = TokenServices(sharedStores: stores, loader: makeLoader)
    return services
}
