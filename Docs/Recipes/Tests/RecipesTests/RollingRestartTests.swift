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

/// An authorization server that ends a tenant's session when a refresh token is presented twice, and an API for its tokens.
private final class Upstream: Sendable {
    struct Counts {
        var newest: [String: Int] = [:]
        var (rotations, reuses, requests, failures) = (0, 0, 0, 0)
    }

    private let state = Mutex(Counts())
    var counts: Counts { state.withLock(\.self) }

    func signIn(_ tenant: String) -> AccessToken {
        state.withLock { $0.newest[tenant] = 1 }
        return AccessToken("spent", lifetime: .zero, refreshToken: "\(tenant).1")
    }

    /// A token is its tenant and its number.
    func answer(_ request: String) -> LoopbackServer.Reply {
        let isExchange = request.hasPrefix("POST /token ")
        let mark = isExchange ? "refresh_token=" : "Bearer "
        let token = request.components(separatedBy: mark).dropFirst().first?.prefix { !"\r\n&".contains($0) } ?? ""
        let parts = token.split(separator: ".").map { String($0) }
        guard parts.count == 2, let number = Int(parts[1]) else { return .answer(400, body: "{}") }
        let issued = state.withLock { isExchange ? $0.exchange(parts[0], number) : $0.use(parts[0]) }
        switch issued {
        case .some(let issued) where isExchange:
            return .answer(
                200, "Content-Type: application/json\r\n",
                body: #"{"access_token":"\#(parts[0]).\#(issued)","token_type":"Bearer","expires_in":1,"#
                    + #""refresh_token":"\#(parts[0]).\#(issued)"}"#)
        case .some(0): return .answer(500)
        case .some: return .answer(200, body: parts[0])
        case nil: return isExchange ? .answer(400, body: #"{"error":"invalid_grant"}"#) : .answer(401)
        }
    }
}

extension Upstream.Counts {
    /// The number of the new token; `nil`: the session has ended.
    fileprivate mutating func exchange(_ tenant: String, _ number: Int) -> Int? {
        guard newest[tenant] == number else {
            newest[tenant] = nil
            reuses += 1
            return nil
        }
        newest[tenant] = number + 1
        rotations += 1
        return number + 1
    }

    /// 0 if the API fails; `nil`: the session has ended.
    fileprivate mutating func use(_ tenant: String) -> Int? {
        requests += 1
        let fails = requests.isMultiple(of: 50)
        if fails { failures += 1 }
        return newest[tenant].map { fails ? 0 : $0 }
    }
}

/// Passes requests to whichever instance takes them.
private final class Balancer: Sendable {
    struct Counts {
        var (answers, failures, refused, closed) = (0, 0, 0, 0)
        var problems: [String] = []
        var isOver = false
    }

    let ports: [Int]
    let client: HTTPClient
    private let state = Mutex(Counts())
    var counts: Counts { state.withLock(\.self) }
    func end() { state.withLock { $0.isOver = true } }

    init(_ ports: [Int], over client: HTTPClient) { (self.ports, self.client) = (ports, client) }

    func isUp(_ port: Int) async -> Bool { (try? await send("nobody", to: port)) != nil }

    private func send(_ tenant: String, to port: Int) async throws -> (Int, String) {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/reports")
        request.headers.add(name: "Authorization", value: tenant)
        let answer = try await client.execute(request, timeout: .seconds(30))
        return (Int(answer.status.code), String(buffer: try await answer.body.collect(upTo: 1 << 20)))
    }

    func run(_ tenants: [String]) async {
        while !counts.isOver {
            let tenant = tenants.randomElement() ?? ""
            var instances = ports.shuffled()
            while let port = instances.popLast() {
                do {
                    let (status, body) = try await send(tenant, to: port)
                    state.withLock { state in
                        switch status {
                        case 200 where body == tenant: state.answers += 1
                        case 502: state.failures += 1
                        default: state.problems.append("\(status) for \(tenant): \(body)")
                        }
                    }
                    break
                } catch {
                    let (isLast, isRefused) = (instances.isEmpty, HTTPClient.isFromConnecting(error))
                    state.withLock { state in
                        if isLast { state.problems.append("no instance takes a request: \(error)") }
                        if isRefused { state.refused += 1 } else { state.closed += 1 }
                    }
                }
            }
        }
    }
}

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
        try await withClient { client in
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
