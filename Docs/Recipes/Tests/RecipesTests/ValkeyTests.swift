import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing

@testable import InValkey

@Suite(
    .enabled(if: TestServer("valkey") != nil, "start a Valkey or Redis with Docs/Recipes/run"), .serialized,
    .timeLimit(.minutes(5)))
struct `A grant in Valkey` {
    let server: TestServer

    static let password = "app-password-Vu73kQx2"

    static func database(_ user: String = "app", _ password: String = password, server: String = "valkey") -> ValkeyConnection {
        ValkeyConnection(host: "127.0.0.1", port: TestServer(server)?.port ?? 1, user: (user, password))
    }

    static func store(_ key: String) -> ValkeyTokenStore { ValkeyTokenStore(database: database(), key: key) }

    init() throws {
        server = try #require(TestServer("valkey"))
    }

    @Test func `the store keeps every promise of a shared store, and tells ages by the server's clock`() async throws {
        let key = "tokens:\(UUID())"
        try await checkPromises([Self.store(key), Self.store(key)])
    }

    @Test func `the stores name each of many keys, and sign an account out through any of them`() async throws {
        let stores = ValkeyTokenStores(databases: (1...3).map { _ in Self.database() }, prefix: "tokens:[*\(UUID())?]\\")
        let names = (1...2500).map { "\u{301}\($0)" }
        try await withThrowingTaskGroup { group in
            for name in names { group.addTask { _ = try await stores.store(for: name).swap(Data(), ifAt: nil) } }
            try await group.waitForAll()
        }
        #expect(try await Set(stores.storedKeys()) == Set(names))
        try await checkSignOut(in: stores, named: "user ")
    }

    @Test func `a rotation takes two requests`() async throws {
        let key = "tokens:\(UUID())"
        try await checkRequests(
            server.name, alone: Self.store(key), together: (1...4).map { _ in Self.store(key + "-shared") })
    }

    @Test func `no replacement of several processes is lost`() async throws {
        let key = "tokens:\(UUID())"
        try await countInProcesses(Self.store(key)) {
            await #expect(processExitsWith: .success) { [key = key as String] in try await count(50, in: Self.store(key)) }
        }
    }

    @Test func `a process that is killed leaves a record that others can replace`() async throws {
        let key = "tokens:\(UUID())"
        try await countAfterKills(Self.store(key)) {
            await #expect(processExitsWith: .signal(SIGKILL)) { [key = key as String] in
                try await countUntilKilled(in: Self.store(key))
            }
        }
    }

    @Test func `while the server is killed, nothing that it has acknowledged is lost`() async throws {
        let key = "tokens:\(UUID())"
        try await checkDuringCrashes(of: server, [Self.store(key), Self.store(key)])
    }

    @Test func `while the server is killed, no session is lost without a reason`() async throws {
        let key = "tokens:\(UUID())"
        let unexplained = try await rotateDuringCrashes(of: server, (1...3).map { _ in Self.store(key) })
        #expect(unexplained.isEmpty)
    }

    @Test func `each session that is lost while clients are killed was lost by one of them`() async throws {
        let key = "tokens:\(UUID())"
        let unexplained = try await killClients(Self.store(key), kills: 12) { ledger in
            await #expect(processExitsWith: .signal(SIGKILL)) { [ledger = ledger as String, key = key as String] in
                try await work(in: Self.store(key), with: ledger)
            }
        }
        #expect(unexplained.isEmpty)
    }

    @Test func `a server that is stopped is an error, and blocks none of Swift's own threads`() async throws {
        let stores = (1...8).map { _ in Self.store("tokens:\(UUID())") }
        for store in stores { _ = try await store.load() }
        try await server.restoring {
            try await server.signal("STOP")
            #expect(try await threadsAreFree(during: stores.map { store in { _ = try await store.load() } }))
        }
    }

    @Test func `a connection that the server has ended is made again`() async throws {
        let store = Self.store("tokens:\(UUID())")
        try await count(1, in: store)
        try await server.restart()
        try await count(1, in: store)
        #expect(try await number(in: store) == 2)
    }

    @Test func `what keeps a record from being read or written is an error that shows no secret`() async throws {
        let key = "tokens:\(UUID())", record = Data("secret".utf8)
        _ = try await Self.store(key).swap(record, ifAt: nil)
        func error(_ database: ValkeyConnection, key: String = key) async -> String {
            let store = ValkeyTokenStore(database: database, key: key)
            let error = await #expect(throws: ValkeyError.self) { try await store.swap(record, ifAt: nil) }
            let text = String(reflecting: error)
            #expect(!text.contains("secret") && !text.contains("password-"))
            return error?.description ?? ""
        }
        // In Redis's words, or in Valkey's.
        let denied = await error(Self.database("reader", "reader-password-9dLw"))
        #expect(denied.contains("can't run this command") || denied.contains("no permissions to run the 'hdel' command"))
        #expect(await error(Self.database(), key: "others:1").hasPrefix("NOPERM"))
        #expect(await error(Self.database("app", "wrong-password-")).hasPrefix("WRONGPASS"))
        #expect(await error(Self.database(server: "nowhere")) == "Connection refused")
        #expect(await error(Self.database("default", server.password, server: "replica")).hasPrefix("READONLY"))
        // Before version 2.6, and where an administrator has renamed the command.
        let old = try AnsweringServer([Array("-ERR unknown command `EVAL`, with args beginning with: `secret`\r\n".utf8)])
        #expect(await error(ValkeyConnection(host: "127.0.0.1", port: old.port)) == "ERR unknown command `EVAL`")
        #expect(try await Self.store(key).load()?.bytes == record)
    }

    @Test func `a failover that loses a rotation ends the session`() async throws {
        let key = "tokens:\(UUID())", follower = try #require(TestServer("replica"))
        let replica = ValkeyTokenStore(database: Self.database("default", server.password, server: "replica"), key: key)
        try await failOver(from: server, to: follower, Self.store(key), replica) {
            try await replica.database.eval("return {redis.call('HGET', KEYS[1], 'bytes')}", key: key, []).first ?? nil
        }
    }
}

/// The sample of the guide.
private func makeService(password: String, loader: some TokenLoader) -> TokenService {
    let database = ValkeyConnection(
        host: "127.0.0.1", user: (name: "reports", password: password))
    let tokens = TokenService(
        sharedStore: ValkeyTokenStore(
            database: database, key: "tokens:reports"),
        loader: loader)
    return tokens
}
