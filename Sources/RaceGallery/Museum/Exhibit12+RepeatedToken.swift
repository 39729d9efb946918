import AccessTokens
import Interleavings

/// Drops a refused token, if it is still the current one, and loads another.
///
/// The request is refused, the token dropped, the next one loaded: from an authorization server behind a cache, which
/// hands out the refused token again. The request is refused, the token dropped, and so on, as fast as the network allows.
///
/// The bug sits in `invalidate(_:)`, which forgets what it was told.
actor ForgetfulInvalidationService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func invalidate(_ refused: AccessToken) {
        if shared.token.valid == refused { shared.token.keep(nil) }
    }
}

extension Exhibit {
    static let repeatedToken = Exhibit(
        12, "The server hands out the refused token again, and an endless loop begins",
        source: "home-assistant/iOS PR#5317; okhttp#960; SerialUpdatingValue [R]: 159,281 loads in 300 ms",
        broken: { simulation in
            let loader = cachedAnswers(simulation)
            let service = ForgetfulInvalidationService(SharedLoad(simulation, token: .signedIn, loader: loader))
            try await persistentRequest(simulation, loader, { try await service.retrieveToken() }) { refused in
                await service.invalidate(refused)
            }
        },
        mended: { simulation in
            let loader = cachedAnswers(simulation)
            let service = simulation.service(loader: loader)
            await service.replace(with: .signedIn)
            try await persistentRequest(simulation, loader, { try await service.retrieveToken() }) { refused in
                await service.invalidate(refused)
            }
        })

    private static func cachedAnswers(_ simulation: Simulation) -> NarratedLoader {
        simulation.loader { _, _ in .signedIn }
    }

    private static func persistentRequest(
        _ simulation: Simulation, _ loader: NarratedLoader, _ retrieve: @escaping Retrieve,
        invalidate: @escaping @Sendable (_ refused: AccessToken) async -> Void
    ) async throws {
        let request = simulation.spawn("request") {
            for _ in 1...8 {
                let token = try await retrieve()
                simulation.log("is answered 401: \(token.value) was revoked")
                await invalidate(token)
            }
        }
        _ = await request.result
        try simulation.require(loader.begun <= 5, "a server that returns the refused token is not asked again and again")
    }
}
