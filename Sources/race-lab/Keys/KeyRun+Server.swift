import AccessTokens
import AccessTokensKeys
import TokenServiceConcurrency

extension KeyRun {
    /// A run against a real server: all keys are asked for once more whenever their tokens have expired.
    static func connect(
        to server: Options.Server, with credentials: Credentials, _ options: Options.Keys, callers: Int,
        report: @escaping @Sendable (_ progress: String) -> Void
    ) async throws -> KeySummary {
        // What a real token says of its owner is the server's own business: it is the key's that had it first.
        let owners = Lock<[String: Int]>([:])
        let tally = KeyTally { key, token in
            owners.withLock { owners in
                let owner = owners[token.value] ?? key
                owners[token.value] = owner
                return owner != key
            }
        }
        let services: TokenServices<Int>
        switch credentials {
        case .client(let secret):
            let loader = try server.loader(secret: secret)
            services = TokenServices(keepingIdle: options.idle, loader: { _ in tally.counting(loader) })
        case .user(let refreshTokens, let secret):
            let loader = try server.loader(ofUserWith: secret)
            let stores = try await server.stores(ofUsers: options.count, seeds: refreshTokens)
            services = TokenServices(keepingIdle: options.idle, stores: stores, loader: { _ in tally.counting(loader) })
        }
        let run = KeyRun(options, callers: callers, services: services, tally: tally) { tally.refused }
        return KeySummary(run, await run.passes(expiries: server.expiries, seconds: server.seconds, report: report))
    }

    /// One pass at first and one after each expiry, as far as the time allows.
    private func passes(
        expiries: Int, seconds: Int, report: @escaping @Sendable (_ progress: String) -> Void
    ) async -> [KeySummary.Pass] {
        let clock = ContinuousClock(), end = clock.now + .seconds(seconds)
        var passes = [await pass("start", report: report, ask)]
        while passes.count <= expiries, let last = passes.last, last.failures == 0, let lifetime = last.lifetime {
            // A second more, since servers count whole ones.
            let expiry = clock.now + lifetime + .seconds(1)
            guard expiry < end else { break }
            report("the tokens expire")
            try? await clock.sleep(until: expiry)
            passes.append(await pass("expiry \(passes.count)", report: report, ask))
        }
        return passes
    }
}
