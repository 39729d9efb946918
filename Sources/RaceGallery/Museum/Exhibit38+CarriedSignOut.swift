import AccessTokens
import AccessTokensDispatch
import Interleavings

/// Signs out for code that has no tasks: a task carries the sign-out to the actor.
///
/// Anna signs out, and the call returns. Her task is still on its way to the actor when the next line asks there for a token, so
/// it gets the one that Anna has just given up.
///
/// The bug sits in `reset()`, which returns before anything has ended. The service for callbacks of this package was written like
/// that: calls through it waited their turn behind the task, but those that went to the actor by themselves didn't.
private struct SignOutCarrier: Sendable {
    let service: UnfencedSessionService
    let executor: (any TaskExecutor)?

    func reset() {
        Task(executorPreference: executor) { await service.signOut() }
    }
}

extension Exhibit {
    static let carriedSignOut = Exhibit(
        38, "A sign-out returns while the task that carries it is on its way: the next line gets the old user's token",
        source: "this package's service for callbacks, before its fences [R]: 867 of 1,000 rounds",
        broken: { simulation in
            let session = UserSession(of: "Anna")
            let service = UnfencedSessionService(SharedLoad(simulation, token: .signedIn, loader: session.loader(simulation)))
            let shim = SignOutCarrier(service: service, executor: simulation.seams.executor)
            try await askAfterTheSignOut(simulation, session, { try await service.retrieveToken() }) { shim.reset() }
        },
        mended: { simulation in
            let session = UserSession(of: "Anna")
            let service = simulation.service(loader: session.loader(simulation))
            await service.replace(with: .signedIn)
            // No handler needs a queue here.
            let shim = AccessTokenService(service: service) { $0() }
            try await askAfterTheSignOut(simulation, session, { try await service.retrieveToken() }) { shim.reset() }
        })

    private static func askAfterTheSignOut(
        _ simulation: Simulation, _ session: UserSession, _ retrieve: @escaping Retrieve,
        signOut: @escaping @Sendable () -> Void
    ) async throws {
        simulation.spawn("Anna") {
            session.end()
            signOut()
            simulation.log("has signed out")
            let token = try? await simulation.ask(retrieve)
            try simulation.require(token == nil, "a sign-out has taken effect when it returns")
        }
        try await simulation.settle()
    }
}
