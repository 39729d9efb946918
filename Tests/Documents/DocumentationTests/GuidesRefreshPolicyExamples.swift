import AccessTokens
import AccessTokensTesting
import Foundation
import Insides
import Interleavings
import Synchronization
import TestBudgets
import Testing

// Every Swift block, every figure and every picture of the guide to `RefreshPolicy`.

@Suite(.inRealTime) struct `The guide to RefreshPolicy` {
    private static let catalog = LinkTests.root.appending(path: "Sources/AccessTokens/AccessTokens.docc")

    private let policy = RefreshPolicy()

    private func page() throws -> String {
        try String(contentsOf: Self.catalog.appending(path: "RefreshPolicyGuide.md"), encoding: .utf8)
    }

    @Test func `a token of five minutes is refreshed as the guide says`() async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let tokens = TokenService(
            environment: .init(clock: clock), loader: loader)

        @Sendable func fiveMinutes(_ name: String) -> AccessToken {
            AccessToken(name, lifetime: .seconds(300))
        }

        async let first = tokens.retrieveToken()
        try await loader.nextCall().succeed(with: fiveMinutes("first"))
        #expect(try await first.value == "first")

        clock.advance(by: .seconds(190))  // fresh: nothing starts
        #expect(try await tokens.retrieveToken().value == "first")
        #expect(loader.loadCount == 1)

        clock.advance(by: .seconds(60))  // the refresh window: one load starts
        #expect(try await tokens.retrieveToken().value == "first")
        let refresh = try await loader.nextCall()

        clock.advance(by: .seconds(20))  // the leeway: callers wait for it
        #expect(tokens.cachedToken == nil)
        async let second = tokens.retrieveToken()
        refresh.succeed(with: fiveMinutes("second"))
        #expect(try await second.value == "second")
    }

    @Test func `a call can ask for ten minutes, or for a load of its own`() async throws {
        let clock = ManualClock(), loader = ScriptedLoader()
        let tokens = TokenService(environment: .init(clock: clock), loader: loader)
        async let first = tokens.retrieveToken()
        try await loader.nextCall().succeed(with: AccessToken("first", lifetime: .seconds(3600)))
        _ = try await first
        do {
            let token = try await tokens.retrieveToken(validFor: .seconds(600))
            let left = tokens.timeLeft(of: token)  // nil: until it is refused
            #expect(left == .seconds(3600))
        }
        async let next = { () async throws -> AccessToken in
            // Its load began after this call.
            let token = try await tokens.reloadToken()
            return token
        }()
        try await loader.nextCall().succeed(with: AccessToken("second", lifetime: .seconds(3600)))
        #expect(try await next.value == "second")
    }

    @Test func `a server that keeps only one token valid needs a service without refreshes ahead`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock(), keepsOneTokenValid: true)
        let policy = RefreshPolicy(maximumRefreshWindow: .zero)
        let tokens = TokenService(policy: policy, loader: server.loader)
        _ = try await tokens.retrieveToken()

        try await expectRevoked(1, under: RefreshPolicy())
        try await expectRevoked(0, under: policy)
    }

    /// Expects how many tokens of requests under way such a server revokes when a caller arrives in the refresh window.
    private func expectRevoked(_ count: Int, under policy: RefreshPolicy) async throws {
        try await explore(.mixed(schedules: 1)) { simulation in
            let clock = simulation.clock
            let server = SimulatedAuthorizationServer(clock: clock, keepsOneTokenValid: true)
            let tokens = TokenService(
                policy: policy, environment: .driven(by: simulation.taskExecutor, clock: clock, seed: 1), loader: server.loader)
            _ = try await tokens.retrieveToken()
            try await clock.sleep(for: .seconds(3000))
            _ = try await tokens.retrieveToken()
            try await simulation.settle()
            try simulation.require(server.tokensRevokedWhileValid == count, "\(count) revoked")
        }
    }

    @Test(arguments: [5, 30, 60, 300, 900, 3600, 86_400])
    func `the table of lifetimes matches the formulas`(lifetime: Int) throws {
        let lifetime = Duration.seconds(lifetime)
        let (opens, opensAtLatest) = try #require(policy.refreshStarts(lifetime: lifetime))
        let expiry = policy.hardExpiry(lifetime: lifetime)
        let attempts = RefreshPolicyPictures.refreshes(in: expiry - opens).count
        let row =
            "| \(lifetime.asTold) | \(policy.leeway(lifetime: lifetime).asTold) | \(opens.asTold(to: opensAtLatest)) "
            + "| \(expiry.asTold) | \(attempts) |"
        #expect(try page().contains(row), "\(row)")
    }

    @Test(arguments: [5, 30, 60, 300, 900, 3600, 86_400])
    func `the table of outages that a token survives is what the formulas say`(lifetime: Int) throws {
        let lifetime = Duration.seconds(lifetime), lastUse = policy.lastUse(lifetime: lifetime)
        let opensAtLatest = try #require(policy.refreshStarts(lifetime: lifetime)).last
        let row = "| \(lifetime.asTold) | \(lastUse.asTold) | \((lastUse - opensAtLatest).asTold) |"
        #expect(try page().contains(row), "\(row)")
    }

    @Test func `the table of pauses matches the formulas`() throws {
        let page = try page()
        for failures in 1...9 {
            let pause = RefreshPolicy.pause(failures: failures)
                .asTold(to: RefreshPolicy.pause(failures: failures, jitter: 1))
            let refreshPause = RefreshPolicy.refreshPause(failures: failures)
                .asTold(to: RefreshPolicy.refreshPause(failures: failures, jitter: 1))
            let row = "| \(failures) | \(pause) | \(refreshPause) |"
            #expect(page.contains(row), "\(row)")
        }
    }

    @Test(arguments: Recovery.Pacing.allCases)
    func `the table of outages matches the formulas`(pacing: Recovery.Pacing) throws {
        let row = Recovery.row(pacing)
        #expect(try page().contains(row), "\(row)")
    }

    @Test func `retryNow ends the pause for a user who tries again, and for a program that is connected again`() async throws {
        let isConnected = Mutex(false), loads = Mutex(0)
        let tokens = TokenService(environment: .init(clock: ManualClock())) { _ in
            loads.withLock { $0 += 1 }
            guard isConnected.withLock({ $0 }) else { throw URLError(.notConnectedToInternet) }
            return AccessToken("again", lifetime: .seconds(3600))
        }
        for _ in 1...3 { _ = try? await tokens.retrieveToken() }
        isConnected.withLock { $0 = true }
        await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(loads.withLock { $0 } == 2)

        let (updates, continuation) = AsyncStream.makeStream(of: Bool.self)
        for isConnected in [true, false, true] { continuation.yield(isConnected) }
        continuation.finish()
        await retry(tokens, whenConnected: updates)
        #expect(try await tokens.retrieveToken().value == "again")
    }

    /// `RENEW_PICTURES=1 swift test --filter DocumentationTests` writes the pictures instead of comparing them.
    @Test(arguments: RefreshPolicyPictures.all.map(\.name), GuidesDrawing.Appearance.allCases)
    func `the pictures match the formulas`(name: String, appearance: GuidesDrawing.Appearance) throws {
        let picture = try #require(RefreshPolicyPictures.all.first { $0.name == name })
        let file = Self.catalog.appending(path: "\(name)\(appearance.rawValue).svg")
        let drawn = picture.draw(appearance)
        if ProcessInfo.processInfo.environment["RENEW_PICTURES"] == "1" {
            try Data(drawn.utf8).write(to: file)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == drawn)
        #expect(try page().contains("](\(name).svg)"))
    }
}

func retry(
    _ tokens: TokenService,
    whenConnected updates: some AsyncSequence<Bool, Never>
) async {
    var wasConnected = true
    for await isConnected in updates {
        if isConnected && !wasConnected { await tokens.retryNow() }
        wasConnected = isConnected
    }
}
