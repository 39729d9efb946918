import AccessTokens
import AsyncHTTPClient
import Foundation
import LoopbackServers
import Testing

@testable import AsAServer

// Nested, and so never while another test kills the database.
extension `A grant in PostgreSQL` {
    @Suite(.timeLimit(.minutes(5)))
    struct `Two instances of a whole server` {
        /// Two instances in front of an API, with the tenants' grants in PostgreSQL.
        final class Instances {
            let upstream: Upstream, server: LoopbackServer, balancer: Balancer
            let tenants: [String]
            private let folder = FileManager.default.temporaryDirectory.appending(path: "server-\(UUID())")
            private var processes: [Int: Process] = [:]

            init(hasGrace: Bool, over client: HTTPClient) async throws {
                try await `A grant in PostgreSQL`.table.value
                let upstream = Upstream(hasGrace: hasGrace), run = UUID().uuidString.prefix(8)
                self.upstream = upstream
                server = try LoopbackServer { upstream.answer($0) }
                let first = Int.random(in: 20_000..<32_000)
                balancer = Balancer([first, first + 1], over: client) { "Bearer key of \($0)" }
                let people = ["anna", "ben", "chen"].map { "\($0)-\(run)" }, company = "acme-\(run)"
                tenants = people + [company]
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
                for port in balancer.ports {
                    var all: [String: [String: String]] = [:]
                    for name in tenants { all[name] = ["key": "key of \(name)", "plan": "gold", "clientID": name] }
                    all[company]?["secret"] = "secret"
                    let api = server.url.deletingLastPathComponent().appending(path: "api").absoluteString
                    let settings: [String: Any] = [
                        "port": port, "tokenURL": server.url.absoluteString, "apiURL": api, "tenants": all,
                        "database": [
                            "host": "127.0.0.1", "port": "\(TestServer("postgresql")?.port ?? 0)", "dbname": "recipes",
                            "user": "app",
                            "password": `A grant in PostgreSQL`.password,
                        ],
                    ].merging(hasGrace ? ["serverGrace": 10] : [:]) { $1 }
                    try JSONSerialization.data(withJSONObject: settings).write(to: file(port))
                }
                for name in people { try await signIn(name, upstream.signIn(name).refreshToken) }
                for port in balancer.ports { try await start(port) }
            }

            /// As an operator does, with the program itself.
            private func signIn(_ name: String, _ token: String?) async throws {
                let process = Process(), input = Pipe()
                process.executableURL = try program("AsAServer")
                process.arguments = [file(balancer.ports[0]).path, name]
                process.standardInput = input
                try process.run()
                try input.fileHandleForWriting.write(contentsOf: Data("\(token ?? "")\n".utf8))
                try await until { !process.isRunning }
                try #require(process.terminationStatus == 0)
            }

            private func file(_ port: Int) -> URL { folder.appending(path: "\(port).json") }

            func start(_ port: Int) async throws {
                let process = Process()
                process.executableURL = try program("AsAServer")
                process.arguments = [file(port).path]
                process.standardOutput = FileHandle.nullDevice
                process.standardError = FileHandle.nullDevice
                try process.run()
                processes[port] = process
                while await !balancer.isUp(port) {
                    try #require(process.isRunning)
                    try await Task.sleep(for: .milliseconds(10))
                }
            }

            func restart(_ port: Int, by signal: Int32) async throws {
                let old = try #require(processes[port])
                kill(old.processIdentifier, signal)
                try await until { !old.isRunning }
                #expect(signal == SIGKILL || old.terminationReason == .exit && old.terminationStatus == 0)
                try await start(port)
            }

            func end() {
                for process in processes.values { kill(process.processIdentifier, SIGKILL) }
                try? FileManager.default.removeItem(at: folder)
            }
        }

        @Test func `the settings of the guide are read, and each tenant's loader is of its own kind`() throws {
            let guide = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "../../../../Sources/AccessTokens/AccessTokens.docc/ManyKeys.md")
            let page = try String(contentsOf: guide, encoding: .utf8)
            let block = try #require(page.firstMatch(of: /(?s)\n```json\n(.*?)\n```/))
            let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).json")
            defer { try? FileManager.default.removeItem(at: file) }
            try Data(block.1.utf8).write(to: file)
            let settings = try Settings(path: file.path)
            let kinds = try settings.tenants.keys.sorted().map {
                try "\($0): \(type(of: settings.loader(of: $0, over: AsyncHTTPClientTransport(client: .shared))))"
            }
            #expect(kinds == ["acme: ClientCredentialsLoader", "anna: RefreshTokenLoader"])
        }

        /// Restarts the instances in turn, under load.
        func restart(_ instances: Instances, _ times: Int, by signal: Int32) async throws {
            let (upstream, balancer) = (instances.upstream, instances.balancer)
            try await withThrowingTaskGroup { group in
                for _ in 1...8 { group.addTask { [tenants = instances.tenants] in await balancer.run(tenants) } }
                defer { balancer.end() }
                for restart in 0..<times {
                    let goal = upstream.counts.rotations + 6
                    try await until { upstream.counts.rotations >= goal }
                    try await instances.restart(balancer.ports[restart % 2], by: signal)
                }
                balancer.end()
                try await group.waitForAll()
            }
            let (counts, sent) = (upstream.counts, balancer.counts)
            print(
                "\(times) restarts by \(signal): \(counts.rotations) rotations, \(counts.reuses) reuses, \(sent.answers) answers,",
                "\(sent.failures) failures of the API, \(sent.problems.count) problems")
        }

        @Test func `a rolling restart under load loses no session, and fails no request that the API didn't fail`() async throws {
            try await withClient { client in
                let instances = try await Instances(hasGrace: false, over: client)
                defer { instances.end() }
                try await restart(instances, 8, by: SIGTERM)
                let (counts, sent) = (instances.upstream.counts, instances.balancer.counts)
                #expect(counts.reuses == 0 && counts.newest.count == 4)
                #expect(
                    sent.problems.isEmpty && sent.failures <= counts.failures && sent.answers > 100, "\(sent.problems.prefix(5))")
            }
        }

        @Test func `kills under load lose no session if the authorization server has a grace period`() async throws {
            try await withClient { client in
                let instances = try await Instances(hasGrace: true, over: client)
                defer { instances.end() }
                try await restart(instances, 4, by: SIGKILL)
                // A tenant whose refresh was cut off waits, and is told so.
                let problems = instances.balancer.counts.problems.filter { !$0.hasPrefix("503 ") }
                #expect(problems.isEmpty, "\(problems.prefix(5))")
                for tenant in instances.tenants {
                    while try await instances.balancer.send(tenant, to: instances.balancer.ports[0]).0 != 200 {
                        try await Task.sleep(for: .milliseconds(100))
                    }
                }
                let counts = instances.upstream.counts
                #expect(counts.reuses == 0 && counts.newest.count == 4)
            }
        }
    }
}
