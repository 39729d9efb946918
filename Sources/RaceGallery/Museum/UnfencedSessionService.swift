import AccessTokens
import Interleavings

/// Shares one load among its callers, and forgets or replaces the token when the person signs out or in.
///
/// A load for Anna is under way. Meanwhile she signs out, and the service forgets its token, which it did not have yet.
/// Then the load ends, and what it brings is kept: Anna is signed in again (museum 7). If Ben has signed in meanwhile,
/// Anna's token replaces his, and he reads her mail (museum 8).
///
/// Shipped in supabase-swift#1371, Alamofire (both bugs, reproduced) and Auth0.swift. It sits in `load()`, which does not
/// ask, after its `await`, whose session it is.
actor UnfencedSessionService {
    private let loader: any TokenLoader
    private let executor: any TaskExecutor
    private var token: KeptToken
    private var flight: Task<AccessToken, any Error>?

    init(loader: some TokenLoader, clock: some Clock<Duration>, executor: any TaskExecutor) {
        self.loader = loader
        self.executor = executor
        token = KeptToken(clock: clock)
    }

    func retrieveToken() async throws -> AccessToken {
        if let token = token.valid { return token }
        let flight = flight ?? Task(executorPreference: executor) { try await self.load() }
        self.flight = flight
        return try await flight.value
    }

    func signOut() { token.keep(nil) }

    func signIn(with new: AccessToken) { token.keep(new) }

    private func load() async throws -> AccessToken {
        defer { flight = nil }
        let loaded = try await loader.loadToken(replacing: nil)
        token.keep(loaded)
        return loaded
    }
}

extension Exhibit {
    /// Museum 7: see ``UnfencedSessionService``.
    static let seven = Exhibit(
        7, "A sign-out during a load is undone by the load's result",
        source: "supabase-swift#1371; Alamofire, reproduced; Auth0.swift",
        broken: { simulation in
            let session = Session(of: "Anna")
            let service = UnfencedSessionService(
                loader: session.loader(simulation), clock: simulation.clock, executor: simulation.taskExecutor)
            try await signOutDuringALoad(simulation, session, { try await service.retrieveToken() }) {
                await service.signOut()
            }
        },
        mended: { simulation in
            let session = Session(of: "Anna")
            let service = session.loader(simulation).service()
            try await signOutDuringALoad(simulation, session, { try await service.retrieveToken() }) {
                _ = await service.reset()
            }
        })

    private static func signOutDuringALoad(
        _ simulation: Simulation, _ session: Session, _ retrieve: @escaping Retrieve,
        signOut: @escaping @Sendable () async throws -> Void
    ) async throws {
        _ = callers(1...1, of: simulation, retrieve)
        simulation.spawn("Anna") {
            session.end()
            try await signOut()
            simulation.log("has signed out")
        }
        try await simulation.settle()
        let later = await simulation.spawn("later caller") { try await retrieve().value }.result
        try simulation.require((try? later.get()) == nil, "after a sign-out nobody gets a token of the session before")
    }

    /// Museum 8: see ``UnfencedSessionService``.
    static let eight = Exhibit(
        8, "One user signs in during another's load, whose result overwrites the new session",
        source: "Alamofire, reproduced",
        broken: { simulation in
            let session = Session(of: "Anna")
            let service = UnfencedSessionService(
                loader: session.loader(simulation), clock: simulation.clock, executor: simulation.taskExecutor)
            try await changeOfUserDuringALoad(simulation, session, { try await service.retrieveToken() }) { token in
                await service.signOut()
                await service.signIn(with: token)
            }
        },
        mended: { simulation in
            let session = Session(of: "Anna")
            let service = session.loader(simulation).service()
            try await changeOfUserDuringALoad(simulation, session, { try await service.retrieveToken() }) { token in
                _ = await service.reset()
                await service.replace(with: token)
            }
        })

    private static func changeOfUserDuringALoad(
        _ simulation: Simulation, _ session: Session, _ retrieve: @escaping Retrieve,
        change: @escaping @Sendable (_ new: AccessToken) async throws -> Void
    ) async throws {
        _ = callers(1...1, of: simulation, retrieve)
        simulation.spawn("Ben") {
            session.end(thenBegin: "Ben")
            try await change(AccessToken("Ben's first token", lifetime: .seconds(3600)))
            simulation.log("has signed in in Anna's place")
        }
        try await simulation.settle()
        let later = try await simulation.spawn("later caller") { try await retrieve().value }.value
        try simulation.require(later.hasPrefix("Ben"), "after Ben has signed in nobody gets a token of Anna's")
    }
}
