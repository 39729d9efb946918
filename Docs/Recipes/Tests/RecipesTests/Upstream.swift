import AccessTokens
import AsyncHTTPClient
import Foundation
import LoopbackServers
import NIOCore
import NIOHTTP1
import Synchronization

@testable import OverAsyncHTTPClient

/// An authorization server that ends a tenant's session when a refresh token is presented twice, and an API for its tokens.
final class Upstream: Sendable {
    struct Counts {
        var newest: [String: Int] = [:]
        var (rotations, reuses, requests, failures) = (0, 0, 0, 0)
    }

    private let state = Mutex(Counts())
    /// Whether a refresh token is accepted again until its successor has been used.
    let hasGrace: Bool
    var counts: Counts { state.withLock(\.self) }

    init(hasGrace: Bool = false) { self.hasGrace = hasGrace }

    func signIn(_ tenant: String) -> AccessToken {
        state.withLock { $0.newest[tenant] = 1 }
        return AccessToken("spent", lifetime: .zero, refreshToken: "\(tenant).1")
    }

    /// A token is its tenant and its number.
    func answer(_ request: String) -> LoopbackServer.Reply {
        let isExchange = request.hasPrefix("POST /token ")
        if isExchange, let client = Self.client(of: request) {
            return issue(state.withLock { $0.exchange(client, $0.newest[client, default: 0], hasGrace: false) } ?? 0, to: client)
        }
        let mark = isExchange ? "refresh_token=" : "Bearer "
        let token = request.components(separatedBy: mark).dropFirst().first?.prefix { !"\r\n&".contains($0) } ?? ""
        let parts = token.split(separator: ".").map { String($0) }
        guard parts.count == 2, let number = Int(parts[1]) else { return .answer(400, body: "{}") }
        let issued = state.withLock { isExchange ? $0.exchange(parts[0], number, hasGrace: hasGrace) : $0.use(parts[0]) }
        switch issued {
        case .some(let issued) where isExchange: return issue(issued, to: parts[0])
        case .some(0): return .answer(500)
        case .some: return .answer(200, body: parts[0])
        case nil: return isExchange ? .answer(400, body: #"{"error":"invalid_grant"}"#) : .answer(401)
        }
    }

    /// The client of a request with client credentials.
    private static func client(of request: String) -> String? {
        guard request.contains("grant_type=client_credentials"),
            let basic = request.firstMatch(of: /(?i)authorization: Basic (\S+)/)?.1,
            let bytes = Data(base64Encoded: String(basic))
        else { return nil }
        return String(decoding: bytes, as: UTF8.self).split(separator: ":").first.map { String($0) }
    }

    private func issue(_ number: Int, to tenant: String) -> LoopbackServer.Reply {
        .answer(
            200, "Content-Type: application/json\r\n",
            body: #"{"access_token":"\#(tenant).\#(number)","token_type":"Bearer","expires_in":1,"#
                + #""refresh_token":"\#(tenant).\#(number)"}"#)
    }
}

extension Upstream.Counts {
    /// The number of the new token; `nil`: the session has ended.
    mutating func exchange(_ tenant: String, _ number: Int, hasGrace: Bool) -> Int? {
        guard newest[tenant, default: 0] == number || hasGrace && newest[tenant] == number + 1 else {
            newest[tenant] = nil
            reuses += 1
            return nil
        }
        newest[tenant] = number + 1
        rotations += 1
        return number + 1
    }

    /// 0 if the API fails; `nil`: the session has ended.
    mutating func use(_ tenant: String) -> Int? {
        requests += 1
        let fails = requests.isMultiple(of: 50)
        if fails { failures += 1 }
        return newest[tenant].map { fails ? 0 : $0 }
    }
}

/// Passes requests to whichever instance takes them.
final class Balancer: Sendable {
    struct Counts {
        var (answers, failures, refused, closed) = (0, 0, 0, 0)
        var problems: [String] = []
        var isOver = false
    }

    let ports: [Int]
    let client: HTTPClient
    /// What a tenant's requests have in `Authorization`.
    let authorization: @Sendable (String) -> String
    private let state = Mutex(Counts())
    var counts: Counts { state.withLock(\.self) }
    func end() { state.withLock { $0.isOver = true } }

    init(_ ports: [Int], over client: HTTPClient, authorization: @escaping @Sendable (String) -> String = { $0 }) {
        (self.ports, self.client, self.authorization) = (ports, client, authorization)
    }

    func isUp(_ port: Int) async -> Bool { (try? await send("nobody", to: port)) != nil }

    func send(_ tenant: String, to port: Int) async throws -> (Int, String) {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/reports")
        request.headers.add(name: "Authorization", value: authorization(tenant))
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
