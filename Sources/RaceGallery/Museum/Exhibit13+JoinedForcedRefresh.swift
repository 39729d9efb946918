import AccessTokens
import Interleavings
import TokenServiceConcurrency

/// Shares one load among its callers, and has a way to force one though the cached token is valid.
///
/// A load is under way, decided by what the user had consented to. Meanwhile the user consents to more, and the app forces
/// a refresh to get a token with the new scope. There is a load to join: the forced refresh ends with the older load's token,
/// which lacks the new scope, and that one is cached.
///
/// The bug sits where a forced call joins the load.
actor JoiningForcedRefreshService: LoadSharing {
    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    func forceRefresh() async throws -> AccessToken {
        // The load may have begun before.
        try await join().value
    }
}

extension Exhibit {
    /// With `TokenService`, passing the new grant forces the refresh: an expired token that carries it.
    static let joinedForcedRefresh = Exhibit(
        13, "A forced refresh joins the older, ordinary load, and gets what that was asked for",
        source: "okta-mobile-swift [R]; MeetingBar PR#974",
        broken: { simulation in
            let consent = Consent()
            let service = JoiningForcedRefreshService(SharedLoad(simulation, loader: consent.loader(simulation)))
            try await consentDuringALoad(simulation, consent, { try await service.retrieveToken() }) {
                try await service.forceRefresh()
            }
        },
        mended: { simulation in
            let consent = Consent()
            let service = simulation.service(loader: consent.loader(simulation))
            try await consentDuringALoad(simulation, consent, { try await service.retrieveToken() }) {
                await service.replace(with: AccessToken("", lifetime: .zero, refreshToken: "extended grant"))
                return try await service.retrieveToken()
            }
        })

    /// The user's consent, which determines the scope of a load's token.
    private final class Consent: Sendable {
        private let scope = Lock("mail")

        func extend() { scope.withLock { $0 = "mail+calendar" } }

        func loader(_ simulation: Simulation) -> NarratedLoader {
            simulation.loader { [self] number, _ in
                let scope = scope.withLock { $0 }
                return AccessToken("token \(number) for \(scope)", lifetime: .seconds(3600), scope: scope)
            }
        }
    }

    private static func consentDuringALoad(
        _ simulation: Simulation, _ consent: Consent, _ retrieve: @escaping Retrieve, force: @escaping Retrieve
    ) async throws {
        simulation.callers(1...1, retrieve)
        simulation.spawn("user") {
            consent.extend()
            simulation.log("consents to calendar")
            guard let token = try? await force() else { return simulation.log("gets no token") }
            simulation.log("gets \(token.value)")
            try simulation.require(token.scope == "mail+calendar", "a forced refresh brings what was not there before it")
        }
        try await simulation.settle()
    }
}
