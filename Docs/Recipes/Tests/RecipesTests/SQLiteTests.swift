import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import GRDB
import Testing

@testable import InSQLite

@Suite(.timeLimit(.minutes(5)))
struct `A grant in SQLite` {
    /// Runs code with the path of a database in a folder of its own.
    func withPath(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "recipes-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder + "/grants.sqlite")
    }

    static func store(_ path: String) throws -> SQLiteTokenStore {
        SQLiteTokenStore(database: try SQLiteTokenStore.database(at: path), name: "reports")
    }

    @Test func `the store keeps every promise of a shared store, and only its user can read it`() async throws {
        try await withPath { path in
            let report = try await checkSharedTokenStore([Self.store(path), Self.store(path)])
            #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test func `no replacement of several processes is lost`() async throws {
        try await withPath { path in
            func process() async {
                await #expect(processExitsWith: .success) { [path = path as String] in
                    try await count(50, in: Self.store(path))
                }
            }
            async let first: Void = process()
            async let second: Void = process()
            async let third: Void = process()
            _ = await (first, second, third)
            let sum = try await number(in: Self.store(path))
            #expect(sum == 150)
        }
    }

    @Test func `a process that is killed leaves a record that others can replace`() async throws {
        try await withPath { path in
            for _ in 1...3 {
                await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
                    let store = try Self.store(path)
                    Thread.detachNewThread {
                        Thread.sleep(forTimeInterval: .random(in: 0.01...0.1))
                        kill(getpid(), SIGKILL)
                    }
                    try await count(1_000_000, in: store)
                }
                let store = try Self.store(path)
                let before = try await number(in: store) ?? 0
                try await count(1, in: store)
                let after = try await number(in: store)
                #expect(after == before + 1)
            }
        }
    }

    @Test func `services share a sign-in`() async throws {
        try await withPath { path in
            let server = SimulatedAuthorizationServer(clock: ManualClock())
            let (web, worker) = (
                TokenService(sharedStore: try Self.store(path), loader: server.loader),
                TokenService(sharedStore: try Self.store(path), loader: server.loader)
            )
            await web.replace(with: server.signIn())
            let token = try await worker.retrieveToken()
            #expect(token.value == web.cachedToken?.value)
        }
    }

    @Test func `a table that is missing and a file that can't be written are errors, not a missing record`() async throws {
        try await withPath { path in
            let bare = SQLiteTokenStore(database: try DatabaseQueue(path: path), name: "reports")
            let error = await #expect(throws: DatabaseError.self) { try await bare.load() }
            #expect("\(error as Any)".contains("no such table: grants"))
            _ = try await Self.store(path).swap(Data("1".utf8), ifAt: nil)
            var configuration = Configuration()
            configuration.readonly = true
            let database = try DatabaseQueue(path: path, configuration: configuration)
            let readOnly = SQLiteTokenStore(database: database, name: "reports")
            let record = try await readOnly.load()
            await #expect(throws: DatabaseError.self) { try await readOnly.swap(Data("2".utf8), ifAt: record?.revision) }
            #expect(throws: CocoaError.self) { try SQLiteTokenStore.database(at: path + "/nowhere") }
        }
    }
}
