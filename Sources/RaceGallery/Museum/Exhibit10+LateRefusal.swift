import AccessTokens
import Interleavings

/// Forgets the token when a request reports that it was refused.
///
/// Two requests carry token 0, which the server has revoked. The first 401 arrives, the token is forgotten, token 1 is
/// loaded. Meanwhile the second request's 401 is still on its way. When it arrives, it throws away token 1, which was never
/// refused, and a needless load follows. With a server that keeps one token valid this load revokes the token in use.
///
/// The bug sits in the signature of `invalidate()`: which token?
actor BlindInvalidationService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func invalidate() { shared.token.keep(nil) }
}

extension Exhibit {
    static let lateRefusal = Exhibit(
        10, "A late 401 for the old token throws the fresh one away",
        source: "KTOR-5681; p2/OAuth2 [S]",
        broken: { simulation in
            let loader = simulation.loader()
            let service = BlindInvalidationService(SharedLoad(simulation, token: .signedIn, loader: loader))
            try await refusedRequests(simulation, loader, { try await service.retrieveToken() }) { _ in
                await service.invalidate()
            }
        },
        mended: { simulation in
            let loader = simulation.loader()
            let service = simulation.service(loader: loader)
            await service.replace(with: .signedIn)
            try await refusedRequests(simulation, loader, { try await service.retrieveToken() }) { refused in
                await service.invalidate(refused)
            }
        })

    private static func refusedRequests(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve,
        invalidate: @escaping @Sendable (_ refused: AccessToken) async -> Void
    ) async throws {
        let requests = (1...2).map { number in
            simulation.spawn("request \(number)") {
                let token = try await retrieve()
                simulation.log("is sent with \(token.value)")
                try await simulation.clock.sleep(for: .seconds(number))
                guard token == .signedIn else { return token }
                simulation.log("is answered 401: \(token.value) was revoked")
                await invalidate(token)
                return try await retrieve()
            }
        }
        for request in requests { _ = await request.result }
        try simulation.require(loader.begun <= 1, "one refused token costs one load, however late its refusals come")
    }
}
