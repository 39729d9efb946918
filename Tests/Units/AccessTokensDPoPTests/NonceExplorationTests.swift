import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Interleavings
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import DataLoading

/// Two APIs whose nonces change, and a record of what each request did.
private final class BoundWorld: MessageSender {
    struct Ledger: Sendable {
        var nonces = ["a.example": 1, "b.example": 1]
        var sends: [String: Int] = [:]
        var served: [String: Int] = [:]
        var proofs: Set<String> = []
        var problems: [String] = []
    }

    let ledger = Lock(Ledger())
    /// A nonce is good for a second of this clock.
    let clock = ManualClock()

    func changeNonce(_ host: String) { ledger.withLock { $0.nonces[host, default: 0] += 1 } }

    /// Requests and answers take a step each to arrive.
    func send(
        _ message: Message, with carried: CarriedToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        await Task.yield()
        let response = ledger.withLock { answer(message, carried, &$0) }
        await Task.yield()
        return response
    }

    private func answer(_ message: Message, _ carried: CarriedToken?, _ ledger: inout Ledger) -> Response {
        let host = message.origin.host, path = message.url.path()
        let second = Int(clock.now.offset / .seconds(1))
        let wanted = "\(host)-\(ledger.nonces[host] ?? 0)-\(second)"
        let proof = SentProof(carried?.proof?.headers["DPoP"])
        ledger.sends[path, default: 0] += 1
        if !ledger.proofs.insert(proof?["jti"] ?? "").inserted { ledger.problems.append("\(path) sent a proof again") }
        if proof?["nonce"]?.hasPrefix(host) == false { ledger.problems.append("\(host) got the nonce of another origin") }
        // A path has the name of its user.
        if carried.map({ path.hasPrefix("/\($0.token.value)") }) == false {
            ledger.problems.append("\(path) had another's token")
        }
        guard proof?["nonce"] != wanted else {
            ledger.served[path, default: 0] += 1
            return Response(url: message.url, status: 200, headers: ["DPoP-Nonce": wanted])
        }
        let headers = ["WWW-Authenticate": "DPoP error=\"use_dpop_nonce\"", "DPoP-Nonce": wanted]
        return Response(url: message.url, status: 401, headers: headers)
    }
}

/// A broken key that uses one server's nonce for all servers, which the tests must detect.
private final class LeakyKey: TokenProof {
    private let key: DPoPKey
    private let last = Lock<String?>(nil)
    var keyThumbprint: String { key.keyThumbprint }

    init(_ key: DPoPKey) { self.key = key }

    @concurrent func proof(method: String, url: URL, accessToken: String?, nonce: String?) async throws -> RequestProof {
        try await key.proof(method: method, url: url, accessToken: accessToken, nonce: nonce ?? last.withLock { $0 })
    }

    func nonce(in headers: [String: String], from url: URL) throws -> String? {
        let nonce = headers.header("DPoP-Nonce")
        last.withLock { $0 = nonce ?? $0 }
        return nonce
    }
}

/// A broken transport that repeats a form whose answer was lost, which the tests must detect.
private struct StubbornTransport: TokenTransport {
    let inner: any TokenTransport

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        do { return try await inner.send(request) } catch { return try await inner.send(request) }
    }
}

/// Loses the first answer that contains a token.
private final class LossyTransport: TokenTransport {
    private let inner: any TokenTransport
    private let hasLost = Lock(false)

    init(_ inner: any TokenTransport) { self.inner = inner }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let answer = try await inner.send(request)
        let isLost = hasLost.withLock { hasLost in
            defer { hasLost = hasLost || answer.status == 200 }
            return !hasLost && answer.status == 200
        }
        if isLost { throw TransportError.connectionLost("the connection was lost") }
        return answer
    }
}

/// Nonces, keys and sign-outs under all orders with a few delays.
///
/// One kind of order is excluded: calls that queue for the service's actor run in order (`Coverage`).
struct NonceExplorationTests {
    private static let a = url("https://a.example/"), b = url("https://b.example/")
    private static let delays: Int = .everyday(1, thorough: 2)

    private func checkCoverage(_ summary: ExplorationSummary, atLeast schedules: Int) {
        #expect(summary.schedules >= schedules && summary.coverage.gaps.allSatisfy { $0 == .defaultActor }, "\(summary)")
    }

    private func service(_ simulation: Simulation, store: (any TokenStore)? = nil, loader: any TokenLoader) -> TokenService {
        TokenService(store: store, environment: .driven(by: simulation.taskExecutor, clock: simulation.clock), loader: loader)
    }

    /// Starts a request in the user's current session, and returns a closure that performs it.
    ///
    /// A nonce may change once more before the repetition; then the caller is told.
    typealias Start = @Sendable (_ origin: URL, _ path: String) throws -> @Sendable () async throws -> Void

    /// Runs a scenario of requests with the token of a user, Ann.
    private func exploring(
        leaks: Bool = false,
        _ body:
            @escaping @Sendable (
                _ simulation: Simulation, _ world: BoundWorld, _ service: TokenService, _ start: @escaping Start
            ) async throws -> Void
    ) async throws -> ExplorationSummary {
        try await explore(.exhaustive(delays: Self.delays)) { simulation in
            let world = BoundWorld(), key = try DPoPKey.test(executor: simulation.taskExecutor)
            let service = service(simulation, loader: ClosedLoader())
            await service.replace(with: AccessToken("ann", tokenType: "DPoP"))
            let tokens = try OriginTokens(service, for: [Self.a, Self.b], proof: leaks ? LeakyKey(key) : key)
            let runner = RequestRunner(session: world, tokens: tokens)
            try await body(simulation, world, service) { origin, path in
                let call = try runner.call(Request(url: origin.appending(path: path)))
                return {
                    do {
                        _ = try await runner.response(to: call) { _ in }
                    } catch let error as DataLoadingError {
                        try simulation.require(error.error == "use_dpop_nonce", "\(error)")
                    } catch let error as TokenServiceError {
                        try simulation.require(error.code == .reset, "\(error)")
                    }
                }
            }
            try await simulation.settle()
            let ledger = world.ledger.withLock { $0 }
            try simulation.require(ledger.problems.isEmpty, "\(ledger.problems)")
            try simulation.require(ledger.sends.values.allSatisfy { $0 <= 2 }, "two sends at most: \(ledger.sends)")
        }
    }

    private struct ClosedLoader: TokenLoader {
        let isRepeatable = true
        func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { throw ScriptedFailure() }
    }

    private func exploringOrigins(leaks: Bool = false) async throws -> ExplorationSummary {
        try await exploring(leaks: leaks) { simulation, world, _, start in
            simulation.spawn("first") { try await start(Self.a, "ann/1")() }
            simulation.spawn("second") { try await start(Self.a, "ann/2")() }
            simulation.spawn("both") {
                for (number, origin) in [(3, Self.b), (4, Self.a), (5, Self.b)] { try await start(origin, "ann/\(number)")() }
            }
            simulation.spawn("server") {
                await Task.yield()
                world.changeNonce("a.example")
            }
        }
    }

    @Test func `47: requests to two origins with changing nonces use each origin's own, and are sent at most twice`() async throws
    {
        checkCoverage(try await exploringOrigins(), atLeast: 30)
    }

    @Test(.thorough) func `the exploration detects a nonce that goes to another origin`() async throws {
        let failure = try await #require(throws: ScheduleFailure.self) { try await exploringOrigins(leaks: true) }
        #expect("\(failure)".contains("got the nonce of another origin"))
    }

    @Test func `a sign-out and the next user's sign-in may come between a nonce's refusal and the repetition`() async throws {
        let summary = try await exploring { simulation, _, service, start in
            let request = try start(Self.a, "ann/1")
            simulation.spawn("Ann") { try await request() }
            simulation.spawn("user") {
                await Task.yield()
                _ = await service.reset()
                await service.replace(with: AccessToken("bob", tokenType: "DPoP"))
                try await start(Self.a, "bob/1")()
                try simulation.require(service.cachedToken?.value == "bob", "Bob is signed in")
            }
        }
        checkCoverage(summary, atLeast: 30)
    }

    /// Runs two services over one store: one refreshes while the program creates a new key, which the other uses.
    private func exploringKeys(resends: Bool = false) async throws -> ExplorationSummary {
        try await explore(.exhaustive(delays: Self.delays)) { simulation in
            let server = NonceServer { _ in await Task.yield() }
            let keys = try [1, 2].map { try DPoPKey.test($0, executor: simulation.taskExecutor) }
            let token = AccessToken(
                "old", tokenType: "DPoP", lifetime: .zero, refreshToken: "r0", keyThumbprint: keys[0].keyThumbprint)
            let store = InMemoryTokenStore(StoredToken(token, received: Date(timeIntervalSince1970: 0)))
            let lossy = LossyTransport(server)
            let transport: any TokenTransport = resends ? StubbornTransport(inner: lossy) : lossy
            let services = try keys.map { key in
                let client = try OAuthClient.test(key, transport)
                return service(simulation, store: store, loader: try RefreshTokenLoader(client))
            }
            for (service, key) in zip(services, keys) {
                for number in 1...2 {
                    simulation.spawn("caller \(number)") {
                        guard let token = try? await service.retrieveToken() else { return }
                        try simulation.require(token.keyThumbprint == key.keyThumbprint, "a token of another key is handed out")
                    }
                }
            }
            simulation.spawn("server") {
                await Task.yield()
                server.state.withLock { $0.nonce += 1 }
            }
            try await simulation.settle()
            let presented = server.facts.presented
            try simulation.require(presented.values.allSatisfy { $0 == 1 }, "each refresh token comes once: \(presented)")
        }
    }

    @Test(.thorough)
    func `47: a refresh that runs when the key changes spends its token once, and no caller gets another key's token`()
        async throws
    {
        checkCoverage(try await exploringKeys(), atLeast: 30)
    }

    @Test
    func `a thousand requests to two APIs whose nonces last a second are sent at most twice, each proof once`()
        async throws
    {
        let world = BoundWorld(), key = try DPoPKey.test(), service = TokenService(loader: ClosedLoader())
        await service.replace(with: AccessToken("ann", tokenType: "DPoP"))
        let runner = RequestRunner(session: world, tokens: try OriginTokens(service, for: [Self.a, Self.b], proof: key))
        let refused = try await withThrowingTaskGroup { group in
            for number in 1...1000 {
                let call = try runner.call(Request(url: (number % 2 == 0 ? Self.a : Self.b).appending(path: "ann/\(number)")))
                group.addTask { (try? await runner.response(to: call) { _ in }) == nil ? 1 : 0 }
                if number % 20 == 0 { world.clock.advance(by: .seconds(1)) }
            }
            return try await group.reduce(0, +)
        }
        let ledger = world.ledger.withLock { $0 }, sends = ledger.sends.values
        #expect(ledger.problems.isEmpty && sends.count == 1000 && sends.allSatisfy { $0 <= 2 })
        // A nonce may end once more between a demand and the repetition; then the caller is told.
        #expect(ledger.served.count == 1000 - refused && ledger.served.values.allSatisfy { $0 == 1 })
    }

    @Test(.thorough) func `the exploration detects a form that is sent again after a lost answer`() async throws {
        let failure = try await #require(throws: ScheduleFailure.self) { try await exploringKeys(resends: true) }
        #expect("\(failure)".contains("each refresh token comes once"))
    }
}
