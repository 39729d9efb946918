import AccessTokens
import AccessTokensKeys
import Interleavings

/// Has a service for each tenant, from its first request until the program ends.
///
/// A thousand tenants send one request each. Then there are a thousand services, and a year later a million.
///
/// The bug sits in `services`: nothing is ever removed.
actor TenantKeyedCache {
    private let makeService: @Sendable (_ tenant: Int) -> TokenService
    private var services: [Int: TokenService] = [:]

    init(makeService: @escaping @Sendable (_ tenant: Int) -> TokenService) {
        self.makeService = makeService
    }

    var count: Int { services.count }

    func service(for tenant: Int) -> TokenService {
        let service = services[tenant] ?? makeService(tenant)
        services[tenant] = service
        return service
    }
}

extension Exhibit {
    static let unboundedKeys = Exhibit(
        31, "Keys are collected without a bound, until the program has no memory left", source: "MSAL.NET#3063",
        broken: { simulation in
            let cache = TenantKeyedCache { _ in simulation.service(loader: simulation.loader()) }
            try await manyTenants(simulation, served: { try await cache.service(for: $0).retrieveToken() }) { await cache.count }
        },
        mended: { simulation in
            let services = simulation.services(keepingIdle: kept) { (_: Int) in simulation.loader() }
            try await manyTenants(simulation, served: { try await services[$0].retrieveToken() }) {
                services.counts.busy + services.counts.idle + services.counts.released
            }
        })

    private static let kept = 2

    private static func manyTenants(
        _ simulation: Simulation, served: @escaping @Sendable (_ tenant: Int) async throws -> AccessToken,
        count: @escaping @Sendable () async -> Int
    ) async throws {
        for tenant in 1...4 {
            simulation.spawn("tenant \(tenant)") { try await simulation.ask { try await served(tenant) } }
        }
        try await simulation.settle()
        try simulation.require(await count() <= kept, "services that are not in use are released, all but \(kept)")
    }
}
