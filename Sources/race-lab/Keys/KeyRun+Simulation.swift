import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation

extension KeyRun {
    /// How often all tokens expire in a simulated run.
    static let expiries = 2

    /// A run against the simulated server: all accounts sign in, and then ask after each expiry.
    ///
    /// Time is simulated, too: no limit passes because the machine is slow.
    static func simulate(
        _ options: Options.Keys, callers: Int, report: @escaping @Sendable (_ progress: String) -> Void
    ) async -> KeySummary {
        let clock = ManualClock()
        let server = AccountServer(accounts: options.count), stores = AccountStores(accounts: options.count)
        let tally = KeyTally { key, token in AccountToken(token.value)?.account != key }
        let services = TokenServices<Int>(
            keepingIdle: options.idle, stores: stores,
            environment: .init(
                clock: clock, wallClock: { [clock] in Date(timeIntervalSince1970: clock.now.offset / .seconds(1)) }),
            loader: { _ in tally.counting(AccountLoader(server: server)) })
        let run = KeyRun(options, callers: callers, services: services, tally: tally) {
            server.lostGrants(withOnly: stores)
        }
        var passes = [
            await run.pass("sign-in", report: report) { key in await services[key].replace(with: server.signIn(key)) }
        ]
        for expiry in 1...expiries {
            clock.advance(by: AccountToken.lifetime)
            passes.append(await run.pass("expiry \(expiry)", report: report, run.ask))
        }
        return KeySummary(run, passes)
    }
}

/// The client's end of the simulated server; not repeatable, as each load spends a refresh token.
private struct AccountLoader: TokenLoader {
    let server: AccountServer

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        // As over a network the caller goes on elsewhere before the answer is there.
        await Task.yield()
        return try server.refresh(previous)
    }
}
