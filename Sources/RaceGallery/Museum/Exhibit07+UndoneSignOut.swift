import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Shares one load among its callers, and forgets or replaces the token when a user signs out or in.
///
/// A load for Anna is under way. Meanwhile she signs out, and the service forgets its token, which it did not have yet.
/// Then the load ends, and its token is kept: Anna is signed in again.
///
/// The bug sits in `load()`, which doesn't check after its `await` whose session it is.
actor UnfencedSessionService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func signOut() { shared.token.keep(nil) }

    func signIn(with new: AccessToken) { shared.token.keep(new) }

    func load() async throws -> AccessToken {
        defer { shared.flight = nil }
        let loaded = try await shared.loader.loadToken(replacing: nil)
        // Whose session is it now?
        shared.token.keep(loaded)
        return loaded
    }
}

/// The session at the server, whose user a load's token belongs to.
final class UserSession: Sendable {
    private let user: Lock<String?>

    init(of user: String) {
        self.user = Lock(user)
    }

    /// Ends the session, and begins the next user's session if there is one.
    func end(thenBegin user: String? = nil) {
        self.user.withLock { $0 = user }
    }

    func loader(_ simulation: Simulation) -> NarratedLoader {
        simulation.loader { [self] number, _ in
            guard let user = user.withLock({ $0 }) else { throw ScriptedFailure(.signIn) }
            return AccessToken("\(user)'s token \(number)", lifetime: .seconds(3600))
        }
    }
}

extension Exhibit {
    static let undoneSignOut = Exhibit(
        7, "A sign-out during a load is undone by the load's result",
        source: "supabase-swift#1371; Alamofire [R]; Auth0.swift [S]",
        broken: { simulation in
            let session = UserSession(of: "Anna")
            let service = UnfencedSessionService(SharedLoad(simulation, loader: session.loader(simulation)))
            try await signOutDuringALoad(simulation, session, { try await service.retrieveToken() }) {
                await service.signOut()
            }
        },
        mended: { simulation in
            let session = UserSession(of: "Anna")
            let service = simulation.service(loader: session.loader(simulation))
            try await signOutDuringALoad(simulation, session, { try await service.retrieveToken() }) {
                _ = await service.reset()
            }
        })

    private static func signOutDuringALoad(
        _ simulation: Simulation, _ session: UserSession, _ retrieve: @escaping Retrieve,
        signOut: @escaping @Sendable () async throws -> Void
    ) async throws {
        simulation.callers(1...1, retrieve)
        simulation.spawn("Anna") {
            session.end()
            try await signOut()
            simulation.log("has signed out")
        }
        try await simulation.settle()
        let later = await simulation.spawn("later caller") { try await simulation.ask(retrieve) }.result
        try simulation.require((try? later.get()) == nil, "after a sign-out no caller gets a token of the previous session")
    }
}
