import AccessTokens
import AccessTokensKeys
import AccessTokensSharedFiles
import AccessTokensSharing
import AsyncHTTPClient
import Foundation
import LoopbackServers
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@testable import OverAsyncHTTPClient
@testable import worker

@Suite(.timeLimit(.minutes(5)))
struct `Two instances of a server with many tenants` {
    @Test func `a rolling restart under load loses no session, and fails no request that the API didn't fail`() async throws {
        let upstream = Upstream(), server = try LoopbackServer { upstream.answer($0) }
        let folder = FileManager.default.temporaryDirectory.appending(path: "restart-\(UUID().uuidString.prefix(8))").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var settings = Settings(directory: folder, ledger: "", program: try program("worker").path)
        settings.server = server.url.absoluteString
        let tenants = ["anna", "ben", "chen", "dora"]
        let services = TokenServices<String>(sharedStores: SharedFileTokenStores(directory: folder)) { _, _ in
            throw CancellationError()
        }
        for tenant in tenants { await services[tenant].replace(with: upstream.signIn(tenant)) }
        try await withClient(.forTokens) { client in
            let first = Int.random(in: 20_000..<32_000), balancer = Balancer([first, first + 1], over: client)
            func start(_ port: Int) async throws -> Process {
                let process = Process()
                settings.port = port
                process.executableURL = URL(fileURLWithPath: settings.program)
                process.arguments = ["reports", settings.text]
                process.standardOutput = FileHandle.nullDevice
                process.standardError = FileHandle.nullDevice
                try process.run()
                while await !balancer.isUp(port) {
                    try #require(process.isRunning)
                    try await Task.sleep(for: .milliseconds(10))
                }
                return process
            }
            var instances = [try await start(first), try await start(first + 1)]
            defer { for instance in instances { kill(instance.processIdentifier, SIGKILL) } }
            try await withThrowingTaskGroup { group in
                for _ in 1...8 { group.addTask { await balancer.run(tenants) } }
                defer { balancer.end() }
                for restart in 0..<8 {
                    let goal = upstream.counts.rotations + 6
                    try await until { upstream.counts.rotations >= goal }
                    let old = instances[restart % 2]
                    kill(old.processIdentifier, SIGTERM)
                    try await until { !old.isRunning }
                    #expect(old.terminationReason == .exit && old.terminationStatus == 0)
                    instances[restart % 2] = try await start(first + restart % 2)
                }
                balancer.end()
                try await group.waitForAll()
            }
            let (counts, sent) = (upstream.counts, balancer.counts)
            print(
                "8 restarts: \(counts.rotations) rotations, \(counts.reuses) reuses, \(sent.answers) answers,",
                "\(sent.failures) failures of the API; passed on: \(sent.refused) that were refused, \(sent.closed) without an answer"
            )
            #expect(counts.reuses == 0 && counts.newest.count == 4)
            #expect(sent.problems.isEmpty && sent.failures <= counts.failures && sent.answers > 100, "\(sent.problems.prefix(5))")
        }
    }
}
