import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// A server that requires its current nonce in each proof, and accepts each refresh token once.
private final class NonceWantingServer: Sendable {
    struct Demand: Error { let nonce: Int }

    private struct State {
        var nonce = 1
        var current = 0
        var presentedAgain = 0
    }

    private let state = Lock(State())
    private let simulation: Simulation

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// How often a spent refresh token was presented.
    var presentedAgain: Int { state.withLock { $0.presentedAgain } }

    func changeNonce() { state.withLock { $0.nonce += 1 } }

    /// Checks the proof, and only then the refresh token; the answer takes a second, and may be lost.
    func renew(_ token: AccessToken?, nonce: Int) async throws -> AccessToken {
        let demand = state.withLock { state -> Demand? in
            guard nonce == state.nonce else { return Demand(nonce: state.nonce) }
            if token?.refreshToken != "grant \(state.current)" { state.presentedAgain += 1 }
            state.current += 1
            return nil
        }
        try await simulation.seams.clock.sleep(for: .seconds(1))
        if let demand {
            simulation.log("wants the nonce \(demand.nonce)", by: "server")
            throw demand
        }
        let isLost = simulation.choose("whether the answer is lost", among: [false, true]) ?? false
        simulation.log(isLost ? "answers, but nothing arrives" : "answers", by: "server")
        if isLost { throw ScriptedFailure(message: "the connection was lost") }
        let number = state.withLock { $0.current }
        return AccessToken("token \(number)", lifetime: .seconds(3600), refreshToken: "grant \(number)")
    }
}

/// Sends a refresh once more when it fails, because a server may have required another nonce.
///
/// It doesn't check why it failed. When an answer is lost, the server has spent the refresh token, treats the second request as
/// theft, and ends the session. The bug sits in the `catch`.
private actor RefreshRepeatingService {
    private let server: NonceWantingServer
    private var token: AccessToken?
    private var nonce = 1

    init(_ server: NonceWantingServer) { self.server = server }

    func retrieveToken() async throws -> AccessToken {
        if let token { return token }
        do {
            return try await renew()
        } catch {
            if let demand = error as? NonceWantingServer.Demand { nonce = demand.nonce }
            return try await renew()
        }
    }

    private func renew() async throws -> AccessToken {
        let renewed = try await server.renew(.signedIn, nonce: nonce)
        token = renewed
        return renewed
    }
}

extension Exhibit {
    static let repeatedRefresh = Exhibit(
        36, "A refresh is repeated for a required nonce, but also after a lost answer",
        source: "related to atproto#3859",
        broken: { simulation in
            let server = NonceWantingServer(simulation), service = RefreshRepeatingService(server)
            try await aChangingNonce(simulation, server) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let server = NonceWantingServer(simulation)
            let service = simulation.service(
                loader: NarratedLoader(simulation) { _, previous in
                    do {
                        return try await server.renew(previous, nonce: 1)
                    } catch let demand as NonceWantingServer.Demand {
                        // Nothing was spent. After any other error, something may have been.
                        return try await server.renew(previous, nonce: demand.nonce)
                    }
                })
            await service.replace(with: AccessToken("", lifetime: .zero, refreshToken: "grant 0"))
            try await aChangingNonce(simulation, server) { try await service.retrieveToken() }
        })

    private static func aChangingNonce(
        _ simulation: Simulation, _ server: NonceWantingServer, _ retrieve: @escaping Retrieve
    ) async throws {
        simulation.spawn("server") {
            guard simulation.choose("whether the nonce changes", among: [false, true]) ?? false else { return }
            simulation.log("changes its nonce")
            server.changeNonce()
        }
        simulation.spawn("caller") { try await simulation.ask(retrieve) }.allowingError()
        try await simulation.settle()
        try simulation.require(
            server.presentedAgain == 0, "a refresh token is sent again only if the server has not looked at it")
    }
}
