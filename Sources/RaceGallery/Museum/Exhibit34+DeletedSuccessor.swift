import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Shares its stored grant with another process, and deletes the stored grant when the server refuses its refresh token.
///
/// Two processes find the token expired, and present the same refresh token. The server takes it once. By the time the loser is
/// refused, the winner has saved the new grant. The loser deletes that grant: the user must sign in again, although the session
/// still exists.
///
/// The bug sits in the `catch`: the server refused the grant that was presented, not the one that is now stored.
actor DeletingLoserService {
    private let loader: any TokenLoader
    private let keychain: SharedKeychain

    init(loader: some TokenLoader, keychain: SharedKeychain) {
        self.loader = loader
        self.keychain = keychain
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = await keychain.valid { return token }
        do {
            let renewed = try await loader.loadToken(replacing: keychain.grant)
            await keychain.save(renewed)
            return renewed
        } catch {
            await keychain.save(nil)
            throw error
        }
    }
}

extension Exhibit {
    static let deletedSuccessor = Exhibit(
        34, "Of two processes that refresh at once, the one that is refused deletes what the other has saved",
        source: "gemini-cli#29048; vercel/ai#20674",
        broken: { simulation in
            let loader = takingEachOnce(simulation)
            let keychain = SharedKeychain(signedInWith: first, clock: simulation.seams.clock)
            let processes = (0..<2).map { _ in DeletingLoserService(loader: loader, keychain: keychain) }
            try await winnerAndLoser(simulation) { try await processes[$0].retrieveToken() }
        },
        mended: { simulation in
            let processes = await simulation.processes(2, loader: takingEachOnce(simulation), signedInWith: first)
            try await winnerAndLoser(simulation) { try await processes[$0].retrieveToken() }
        })

    private static let first = AccessToken("access 1", lifetime: .seconds(3600), refreshToken: "refresh 1")

    /// A server that takes each refresh token once, and refuses it the second time without ending the session.
    private static func takingEachOnce(_ simulation: Simulation) -> NarratedLoader {
        let current = Lock(1)
        return NarratedLoader(simulation) { _, previous in
            let number = current.withLock { current -> Int? in
                guard previous?.refreshToken == "refresh \(current)" else { return nil }
                current += 1
                return current
            }
            try await simulation.seams.clock.sleep(for: .seconds(1))
            guard let number else { throw ScriptedFailure(.signIn) }
            return AccessToken("access \(number)", lifetime: .seconds(3600), refreshToken: "refresh \(number)")
        }
    }

    /// An hour later both ask at once; then one of them asks again.
    private static func winnerAndLoser(
        _ simulation: Simulation, _ retrieve: @escaping @Sendable (_ process: Int) async throws -> AccessToken
    ) async throws {
        try await simulation.clock.sleep(for: .seconds(3600))
        for process in 0..<2 {
            let task = simulation.spawn("process \(process + 1)") { try await simulation.ask { try await retrieve(process) } }
            task.allowingError()
        }
        try await simulation.settle()
        let isSignedIn = (try? await simulation.ask({ try await retrieve(0) }, saying: "asks once more")) != nil
        try simulation.require(isSignedIn, "a refused refresh token takes nothing but itself out of the store")
    }
}
