import AccessTokens
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
        _ user: String = "app", _ password: String = password, in name: String = "recipes", port: Int32? = nil
    ) -> PostgreSQLConnection {
        PostgreSQLConnection([
            "host": "127.0.0.1", "port": "\(port ?? TestServer("postgresql")?.port ?? 0)", "dbname": name, "user": user,
            "password": password,
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
        let name = UUID().uuidString, store = Self.store(name)
        let report = try await checkSharedTokenStore([store, Self.store(name)])
        #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
        let age = try #require(try await store.load()?.age)
        #expect(age < .seconds(60))
        while try await store.load()?.age ?? .zero <= age {}
    }

    @Test func `a rotation takes two requests`() async throws {
        let counts = try await requests(of: [Self.store("\(UUID())")], rotations: 20)
        #expect(counts[0].swaps == 40 && counts[0].loads == 0 && counts[0].conflicts == 0)
        let name = UUID().uuidString
        let shared = try await requests(of: (1...4).map { _ in Self.store(name) }, rotations: 20)
        // A conflict takes another one, which reads.
        let sum = shared.map { $0.loads + $0.swaps + $0.conflicts }.reduce(0, +)
        print("postgresql: \(Double(sum) / 20) requests a rotation of 4 services that load at once")
    }

    @Test func `no replacement of several processes is lost`() async throws {
        let name = UUID().uuidString
        func process() async {
            await #expect(processExitsWith: .success) { [name = name as String] in try await count(50, in: Self.store(name)) }
        }
        async let first: Void = process()
        async let second: Void = process()
        _ = await (first, second)
        let sum = try await number(in: Self.store(name))
        #expect(sum == 100)
    }

    @Test func `a process that is killed leaves a record that others can replace`() async throws {
        let name = UUID().uuidString, store = Self.store(name)
        for _ in 1...3 {
            await #expect(processExitsWith: .signal(SIGKILL)) { [name = name as String] in
                let store = Self.store(name)
                Thread.detachNewThread {
                    Thread.sleep(forTimeInterval: .random(in: 0.05...0.15))
                    kill(getpid(), SIGKILL)
                }
                try await count(1_000_000, in: store)
            }
            // What the process had sent may be done now.
            try await count(1, in: store)
            #expect(try await number(in: store) ?? 0 > 0)
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
        let standby = PostgreSQLConnection([
            "host": "127.0.0.1", "port": "\(follower.port)", "dbname": "recipes", "user": "app", "password": Self.password,
            "target_session_attrs": "any",
        ])
        let successor = PostgreSQLTokenStore(database: standby, name: name)
        try await failOver(from: server, to: follower, Self.store(name), successor) { try await successor.load()?.bytes }
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
        sharedStore: PostgreSQLTokenStore(database: database, name: "reports"),
        loader: loader)
    return tokens
}
