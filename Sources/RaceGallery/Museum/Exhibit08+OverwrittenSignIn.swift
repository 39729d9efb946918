import AccessTokens
import Interleavings

extension Exhibit {
    /// The broken service is ``UnfencedSessionService``, that of exhibit 7.
    ///
    /// A load for Anna is under way. Meanwhile Ben signs in on the same device. Then the load ends, and Anna's token replaces
    /// his: he reads her mail.
    static let overwrittenSignIn = Exhibit(
        8, "One user signs in during another's load, whose result overwrites the new session",
        source: "Alamofire [R]",
        broken: { simulation in
            let session = UserSession(of: "Anna")
            let service = UnfencedSessionService(SharedLoad(simulation, loader: session.loader(simulation)))
            try await changeOfUserDuringALoad(simulation, session, { try await service.retrieveToken() }) { token in
                await service.signOut()
                await service.signIn(with: token)
            }
        },
        mended: { simulation in
            let session = UserSession(of: "Anna")
            let service = simulation.service(loader: session.loader(simulation))
            try await changeOfUserDuringALoad(simulation, session, { try await service.retrieveToken() }) { token in
                _ = await service.reset()
                await service.replace(with: token)
            }
        })

    private static func changeOfUserDuringALoad(
        _ simulation: Simulation, _ session: UserSession, _ retrieve: @escaping Retrieve,
        change: @escaping @Sendable (_ new: AccessToken) async throws -> Void
    ) async throws {
        simulation.callers(1...1, retrieve)
        simulation.spawn("Ben") {
            session.end(thenBegin: "Ben")
            try await change(AccessToken("Ben's first token", lifetime: .seconds(3600)))
            simulation.log("has signed in in Anna's place")
        }
        try await simulation.settle()
        let later = try await simulation.spawn("later caller") { try await simulation.ask(retrieve) }.value
        try simulation.require(later.value.hasPrefix("Ben"), "after Ben has signed in no caller gets a token of Anna's")
    }
}
