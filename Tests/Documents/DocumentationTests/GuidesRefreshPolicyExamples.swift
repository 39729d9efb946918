import AccessTokens
import AccessTokensTesting
import Foundation
import Interleavings
import Testing

// Every Swift block, every figure and every picture of the guide to `RefreshPolicy`.

@Suite struct `The guide to RefreshPolicy` {
    private static let catalog = LinkTests.root.appending(path: "Docs/Guides.docc")

    private let policy = RefreshPolicy()

    private func page() throws -> String {
        try String(contentsOf: Self.catalog.appending(path: "RefreshPolicyGuide.md"), encoding: .utf8)
    }

    @Test func `a token of five minutes, from its load to its successor`() async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let tokens = TokenService(environment: .init(clock: clock), loader: loader)

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

    @Test func `a server that keeps one token valid needs a service that does not refresh ahead`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock(), keepsOneTokenValid: true)
        let policy = RefreshPolicy(maximumRefreshWindow: .zero)
        let tokens = TokenService(policy: policy, loader: server.loader)
        _ = try await tokens.retrieveToken()

        try await expectRevoked(1, under: RefreshPolicy())
        try await expectRevoked(0, under: policy)
    }

    /// How many tokens such a server takes away from requests under way, when a caller comes in the refresh window.
    private func expectRevoked(_ count: Int, under policy: RefreshPolicy) async throws {
        try await explore(.random(schedules: 1)) { simulation in
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
    func `the table of lifetimes is what the formulas say`(lifetime: Int) throws {
        let lifetime = Duration.seconds(lifetime)
        let opens = try #require(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 0))
        let opensAtLatest = try #require(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 1))
        let expiry = policy.hardExpiry(forLifetime: lifetime)
        let attempts = RefreshPolicyPictures.refreshes(in: expiry - opens).count
        let row =
            "| \(lifetime.asTold) | \(policy.leeway(forLifetime: lifetime).asTold) | \(opens.asTold(to: opensAtLatest)) "
            + "| \(expiry.asTold) | \(attempts) |"
        #expect(try page().contains(row), "\(row)")
    }

    @Test func `the table of pauses is what the formulas say`() throws {
        let page = try page()
        for failures in 1...9 {
            let pause = RefreshPolicy.pause(afterFailures: failures, jitter: 0)
                .asTold(to: RefreshPolicy.pause(afterFailures: failures, jitter: 1))
            let refreshPause = RefreshPolicy.refreshPause(afterFailures: failures, jitter: 0)
                .asTold(to: RefreshPolicy.refreshPause(afterFailures: failures, jitter: 1))
            let row = "| \(failures) | \(pause) | \(refreshPause) |"
            #expect(page.contains(row), "\(row)")
        }
    }

    /// `RENEW_PICTURES=1 swift test --filter DocumentationTests` writes the pictures instead of comparing them.
    @Test(arguments: RefreshPolicyPictures.all.map(\.name), GuidesDrawing.Appearance.allCases)
    func `the pictures are what the formulas draw`(name: String, appearance: GuidesDrawing.Appearance) throws {
        let picture = try #require(RefreshPolicyPictures.all.first { $0.name == name })
        let file = Self.catalog.appending(path: "Resources/\(name)\(appearance.rawValue).svg")
        let drawn = picture.draw(appearance)
        if ProcessInfo.processInfo.environment["RENEW_PICTURES"] == "1" {
            try Data(drawn.utf8).write(to: file)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == drawn)
        #expect(try page().contains("](\(name))"))
    }
}
