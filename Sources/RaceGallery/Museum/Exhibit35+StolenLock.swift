import AccessTokens
import AccessTokensTesting
import Interleavings

/// A lock between processes; if it was taken more than ten seconds ago, its process counts as crashed.
actor StaleableLock {
    private let clock: any Clock<Duration>
    private let elapsed: @Sendable () -> Duration
    private var taken: Duration?

    init(clock: some Clock<Duration>) {
        let start = clock.now
        self.clock = clock
        elapsed = { start.duration(to: clock.now) }
    }

    func take() async throws {
        while let taken, elapsed() - taken <= .seconds(10) { try await clock.sleep(for: .seconds(1)) }
        taken = elapsed()
    }

    func giveBack() { taken = nil }
}

/// Takes a lock between processes around reading the grant, refreshing it and saving it.
///
/// The server needs twenty seconds for an answer. After ten the other process treats the lock as left behind, reads
/// the grant that is still stored, and presents the refresh token that is still in use: the session ends.
///
/// The bug sits in the lock's maximum age. It must be longer than any request can take, which requires a limit for the request,
/// too.
actor LockingService {
    private let loader: any TokenLoader
    private let keychain: SharedKeychain
    private let lock: StaleableLock

    init(loader: some TokenLoader, keychain: SharedKeychain, lock: StaleableLock) {
        self.loader = loader
        self.keychain = keychain
        self.lock = lock
    }

    func retrieveToken() async throws -> AccessToken {
        try await lock.take()
        let outcome: Result<AccessToken, any Error>
        do { outcome = .success(try await validToken()) } catch { outcome = .failure(error) }
        await lock.giveBack()
        return try outcome.get()
    }

    private func validToken() async throws -> AccessToken {
        if let token = await keychain.valid { return token }
        let renewed = try await loader.loadToken(replacing: keychain.grant)
        await keychain.save(renewed)
        return renewed
    }
}

extension Exhibit {
    static let stolenLock = Exhibit(
        35, "A lock between processes is taken from a holder that is merely slow", source: "openclaw#105666",
        broken: { simulation in
            let server = simulation.server(latency: .seconds(20), keepsOneTokenValid: false, rotates: true)
            let lock = StaleableLock(clock: simulation.seams.clock)
            let keychain = SharedKeychain(signedInWith: server.signIn(), clock: simulation.seams.clock)
            let loader = simulation.loader(of: server)
            let processes = (0..<2).map { _ in LockingService(loader: loader, keychain: keychain, lock: lock) }
            try await aSlowHolder(simulation, server) { try await processes[$0].retrieveToken() }
        },
        mended: { simulation in
            let server = simulation.server(latency: .seconds(20), keepsOneTokenValid: false, rotates: true)
            let processes = await simulation.processes(
                2, loader: simulation.loader(of: server), signedInWith: server.signIn())
            try await aSlowHolder(simulation, server) { try await processes[$0].retrieveToken() }
        })

    private static func aSlowHolder(
        _ simulation: Simulation, _ server: SimulatedAuthorizationServer,
        _ retrieve: @escaping @Sendable (_ process: Int) async throws -> AccessToken
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        for process in 0..<2 {
            let task = simulation.spawn("process \(process + 1)") { try await simulation.ask { try await retrieve(process) } }
            task.allowingError()
        }
        try await simulation.settle()
        try simulation.require(
            server.reuseDetected == 0, "while a request may be under way no other process presents its refresh token")
    }
}
