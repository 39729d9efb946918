import AccessTokens
import Interleavings

/// Requests a token with its current scopes and the one that a resource wants, and replaces the current token with it.
///
/// Two requests each need another scope. Both read the token's scopes, and both wait for a new token. The later one overwrites
/// the other with a token that lacks the first request's scope: that request steps up again, and removes the second one's scope.
///
/// The bug sits between reading the scopes and writing the token. The new token must be compared with the token that is current
/// at that time.
private actor ScopeLosingService {
    private(set) var token: AccessToken
    private let widen: @Sendable (_ scope: String) async throws -> AccessToken

    init(_ token: AccessToken, widen: @escaping @Sendable (_ scope: String) async throws -> AccessToken) {
        self.token = token
        self.widen = widen
    }

    func stepUp(to wanted: String) async throws {
        guard !token.allows(wanted) else { return }
        token = try await widen("\(token.scope ?? "") \(wanted)")
    }
}

extension AccessToken {
    fileprivate func allows(_ scope: String) -> Bool {
        Set(scope.split(separator: " ")).isSubset(of: (self.scope ?? "").split(separator: " "))
    }

    fileprivate static let narrow = AccessToken("read", lifetime: .seconds(3600), scope: "read")
}

extension Exhibit {
    static let lostScope = Exhibit(
        37, "Of two requests that gain a scope each, the later overwrites the token of the other",
        source: "MCP: python-sdk PR#2676, which replaced the scopes altogether",
        broken: { simulation in
            let service = ScopeLosingService(.narrow) { try await widened(simulation, $0) }
            try await twoTools(simulation) {
                try await service.stepUp(to: $0)
            } token: {
                await service.token
            }
        },
        mended: { simulation in
            let service = simulation.service(loader: NarratedLoader(simulation) { _, _ in .narrow })
            await service.replace(with: .narrow)
            try await twoTools(simulation) { wanted in
                while true {
                    let current = try await service.retrieveToken(), generation = service.currentGeneration
                    guard !current.allows(wanted) else { return }
                    let wider = try await widened(simulation, "\(current.scope ?? "") \(wanted)")
                    let begun = await service.widen(to: wider, seen: generation) { wider.allows($0?.scope ?? "") }
                    if begun != nil { return }
                }
            } token: {
                try await service.retrieveToken()
            }
        })

    private static func widened(_ simulation: Simulation, _ scope: String) async throws -> AccessToken {
        simulation.log("asks for '\(scope)'")
        try await simulation.seams.clock.sleep(for: .seconds(1))
        return AccessToken(scope, lifetime: .seconds(3600), scope: scope)
    }

    private static func twoTools(
        _ simulation: Simulation, stepUp: @escaping @Sendable (_ wanted: String) async throws -> Void,
        token: @escaping Retrieve
    ) async throws {
        for wanted in ["write", "delete"] { simulation.spawn("tool '\(wanted)'") { try await stepUp(wanted) } }
        try await simulation.settle()
        let scope = try await token().scope ?? ""
        try simulation.require(
            scope.split(separator: " ").count == 3, "a request that gains a scope takes none away, but the token has '\(scope)'")
    }
}
