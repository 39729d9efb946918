import AccessTokens
import Interleavings

/// Shares one load among its callers, cancels it when the user signs out, and clears `flight` when the load ends.
///
/// A load is under way. The user signs out: the load is cancelled, `flight` is free, and caller 2 starts a load of the new
/// session. Meanwhile the cancelled one ends and cleans up, and clears its successor. Caller 3 finds no load
/// and starts one beside caller 2's.
///
/// The bug sits in the `defer`: compare before clearing.
actor EvictingCleanupService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func signOut() {
        shared.token.keep(nil)
        shared.flight?.cancel()
        shared.flight = nil
    }

    func load() async throws -> AccessToken {
        defer { shared.flight = nil }
        try Task.checkCancellation()
        let loaded = try await shared.loader.loadToken(replacing: nil)
        // If a sign-out has cancelled this task, its token must not be kept.
        try Task.checkCancellation()
        shared.token.keep(loaded)
        return loaded
    }
}

extension Exhibit {
    static let evictedSuccessor = Exhibit(
        9, "A finished flight's clean-up evicts its successor, and the next caller loads beside it",
        source: "Firebase [R]; Duende [S]; golang/go#31420",
        broken: { simulation in
            let loader = simulation.loader()
            let service = EvictingCleanupService(SharedLoad(simulation, loader: loader))
            try await callersAfterASignOut(simulation, loader, { try await service.retrieveToken() }) {
                await service.signOut()
            }
        },
        mended: { simulation in
            let loader = simulation.loader()
            let service = simulation.service(loader: loader)
            try await callersAfterASignOut(simulation, loader, { try await service.retrieveToken() }) {
                _ = await service.reset()
            }
        })

    private static func callersAfterASignOut(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve,
        signOut: @escaping @Sendable () async throws -> Void
    ) async throws {
        simulation.callers(1...1, retrieve)
        let user = simulation.spawn("user") {
            try await simulation.clock.sleep(for: .milliseconds(500))
            try await signOut()
            simulation.log("has signed out")
        }
        try await user.value
        let begun = loader.begun
        for caller in simulation.callers(2...3, retrieve) { _ = await caller.result }
        try simulation.require(loader.begun - begun <= 1, "after a sign-out there is one load, however many callers")
    }
}
