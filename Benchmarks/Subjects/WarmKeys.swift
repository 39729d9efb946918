package import AccessTokens
package import AccessTokensKeys

/// Services of many keys, all kept, each signed in with a token that is valid for a day.
package struct WarmKeys: Sendable {
    package let count: Int
    package let services: TokenServices<Int>

    package init(_ count: Int) async {
        self.count = count
        services = TokenServices(keepingIdle: count) { _, _ in Self.token() }
        for key in 0..<count { await services[key].replace(with: Self.token()) }
    }

    /// As many services, likewise, which no table knows.
    package static func services(_ count: Int) async -> [TokenService] {
        var services: [TokenService] = []
        services.reserveCapacity(count)
        for _ in 0..<count {
            let service = TokenService { _ in token() }
            await service.replace(with: token())
            services.append(service)
        }
        return services
    }

    private static func token() -> AccessToken { AccessToken("warm", lifetime: .seconds(86_400)) }

    /// The services themselves, in the order of the keys.
    package var all: [TokenService] { (0..<count).map { services[$0] } }

    /// The key after a key, in an order that visits each once and that a processor's cache can't foresee.
    @inline(__always) package func key(after key: Int) -> Int {
        // A prime, which shares no factor with a power of ten.
        let next = key + 611_953
        return next < count ? next : next % count
    }
}
