import AccessTokens
import Interleavings
import TokenServiceConcurrency

/// Shares one load among its callers, and can force a load although the cached token is valid.
///
/// A load is under way with the scopes that the user had consented to. Meanwhile the user consents to another scope, and the app
/// forces a refresh to get it. But the forced refresh joins the older load, whose token lacks the new scope and is then cached.
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
    /// With `TokenService`, passing the new grant in an expired token forces the refresh.
    static let joinedForcedRefresh = Exhibit(
        13, "A forced refresh joins an older, ordinary load, and gets that load's token",
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
            try simulation.require(token.scope == "mail+calendar", "a forced refresh returns a token with the new scope")
        }
        try await simulation.settle()
    }
}
