import AccessTokens
import AccessTokensTesting
import Interleavings

/// Refreshes ahead of expiry, and drops a refused token if it is the current one.
///
/// A token is near its end, and a refresh runs. It reaches a server behind a cache, which sends the same token once more.
/// Meanwhile the resource server refuses that token; the token is compared and dropped, correctly. Then the refresh ends and puts
/// the refused token back, good for another hour. caffeine#193 was such a bug; caffeine#1970 was the opposite one, a completed
/// refresh that is discarded.
///
/// The bug sits in the refresh's last line, which doesn't check what was refused meanwhile.
actor StaleRefreshService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func retrieveToken() async throws -> AccessToken {
        guard let token = shared.token.valid else { return try await join().value }
        // The token is near its end: refresh it without making this caller wait.
        if let left = shared.token.left, left < .seconds(900) { _ = join() }
        return token
    }

    func invalidate(_ rejected: AccessToken) {
        if shared.token.valid?.value == rejected.value { shared.token.keep(nil) }
    }

    func load() async throws -> AccessToken {
        defer { shared.flight = nil }
        let token = try await shared.loader.loadToken(replacing: nil)
        // The race: this very token may have been refused since the load began.
        shared.token.keep(token)
        return token
    }
}

extension Exhibit {
    static let staleRefresh = Exhibit(
        24, "Invalidating during a refresh still stores the stale value; a completed refresh is discarded",
        source: "caffeine#193; caffeine#1970",
        broken: { simulation in
            let server = simulation.server()
            let service = StaleRefreshService(SharedLoad(simulation, loader: simulation.loader(of: server)))
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        },
        mended: { simulation in
            let server = simulation.server()
            let service = simulation.service(loader: simulation.loader(of: server))
            try await aRefusalDuringARefresh(simulation, server) {
                try await service.retrieveToken()
            } invalidate: {
                await service.invalidate($0)
            }
        })

    /// Ahead of expiry a caller's request is refused, while the server's cache still has the refused token.
    private static func aRefusalDuringARefresh(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping Retrieve,
        invalidate: @escaping @Sendable (AccessToken) async -> Void
    ) async throws {
        let first = try await retrieve()
        try await simulation.clock.sleep(for: .seconds(3000))
        server.answersRepeatedToken = true
        simulation.spawn("caller 1") {
            try await simulation.ask(retrieve, saying: "asks, and so starts a refresh ahead")
        }
        simulation.spawn("caller 2") {
            // Its request takes as long as the refresh.
            try await simulation.clock.sleep(for: .seconds(1))
            server.revoke(first)
            server.answersRepeatedToken = false
            simulation.log("is refused with \(first.value), invalidates it")
            await invalidate(first)
        }
        try await simulation.settle()
        simulation.spawn("caller 3") {
            let token = try await simulation.ask(retrieve)
            try simulation.require(token.value != first.value, "a refused token is never handed out again")
        }
        try await simulation.settle()
    }
}
