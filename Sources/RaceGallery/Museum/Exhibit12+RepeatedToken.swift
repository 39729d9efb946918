import AccessTokens
import Interleavings

/// Drops a refused token, if it is still the current one, and loads another.
///
/// The request is refused, the token dropped, the next one loaded: from an authorization server behind a cache, which
/// hands out the refused token again. The request is refused, the token dropped, and so on, as fast as the network allows.
///
/// The bug sits in `invalidate(_:)`, which forgets what it was told.
actor ForgetfulInvalidationService {
    private let loader: any TokenLoader
    private let executor: (any TaskExecutor)?
    private var token: AccessToken?
    private var flight: Task<AccessToken, any Error>?

    init(_ token: AccessToken, loader: some TokenLoader, executor: (any TaskExecutor)?) {
        self.token = token
        self.loader = loader
        self.executor = executor
    }

    func retrieveToken() async throws -> AccessToken {
        if let token { return token }
        let flight = flight ?? Task(executorPreference: executor) { try await self.load() }
        self.flight = flight
        return try await flight.value
    }

    func invalidate(_ refused: AccessToken) {
        if token == refused { token = nil }
    }

    private func load() async throws -> AccessToken {
        defer { flight = nil }
        let loaded = try await loader.loadToken(replacing: nil)
        token = loaded
        return loaded
    }
}

extension Exhibit {
    static let repeatedToken = Exhibit(
        12, "The server hands out the refused token again, and an endless loop begins",
        source: "home-assistant/iOS PR#5317; okhttp#960; SerialUpdatingValue [R]: 159,281 loads in 300 ms",
        broken: { simulation in
            let loader = cachedAnswers(simulation)
            let service = ForgetfulInvalidationService(.signedIn, loader: loader, executor: simulation.seams.executor)
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
            while loader.begun < 2 {
                let token = try await retrieve()
                simulation.log("is answered 401: \(token.value) was revoked")
                await invalidate(token)
            }
        }
        _ = await request.result
        try simulation.require(loader.begun < 2, "a refused token that comes again is an error, not a reason to ask again")
    }
}
