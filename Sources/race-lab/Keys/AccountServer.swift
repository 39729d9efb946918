import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

/// A simulated authorization server of many accounts, each with one rotating refresh token.
///
/// A refresh token is good for one refresh. Presented again it ends its account's grant, as RFC 9700 §4.14.2 recommends: then that
/// user would have to sign in once more.
final class AccountServer: Sendable {
    /// What the server remembers of an account.
    private struct Account {
        /// The number of its newest tokens; 0: it has none.
        var newest: UInt32 = 0
        var isEnded = false
    }

    private let accounts: Lock<[Account]>

    init(accounts count: Int) {
        accounts = Lock([Account](repeating: Account(), count: count))
    }

    /// Begins an account's grant, as its user does by signing in.
    func signIn(_ account: Int) -> AccessToken {
        accounts.withLock { $0[account] = Account(newest: 1) }
        return AccountToken(account: account, number: 1).token
    }

    /// Spends the refresh token of the previous token, whosever it is, and issues the next.
    ///
    /// - Throws: A refusal, if that one is spent already, unknown or missing.
    func refresh(_ previous: AccessToken?) throws -> AccessToken {
        guard let old = AccountToken(previous?.refreshToken) else { throw ScriptedFailure.grantRefused }
        let next: AccountToken? = accounts.withLock { accounts in
            guard accounts.indices.contains(old.account), !accounts[old.account].isEnded else { return nil }
            guard accounts[old.account].newest == old.number else {
                accounts[old.account].isEnded = true
                return nil
            }
            accounts[old.account].newest += 1
            return AccountToken(account: old.account, number: old.number + 1)
        }
        guard let next else { throw ScriptedFailure.grantRefused }
        return next.token
    }

    /// How many accounts have no way to their next token: their grant has ended, or the stores don't have its newest refresh token.
    func lostGrants(withOnly stores: AccountStores) -> Int {
        let accounts = accounts.withLock { $0 }
        let stored = stores.numbers
        return zip(accounts, stored).count { account, stored in account.isEnded || account.newest != stored }
    }
}

/// The stores of all accounts: two numbers for each, whatever was saved.
final class AccountStores: TokenStores {
    private struct Row {
        /// The number of the stored tokens; 0: there are none.
        var number: UInt32 = 0
        /// Seconds since 1970.
        var received = 0.0
    }

    private let rows: Lock<[Row]>

    init(accounts count: Int) {
        rows = Lock([Row](repeating: Row(), count: count))
    }

    /// The number of each account's stored tokens.
    var numbers: [UInt32] { rows.withLock { $0 }.map(\.number) }

    func store(for key: Int) -> any TokenStore { Store(account: key, stores: self) }

    @concurrent func storedKeys() async -> [Int] {
        numbers.enumerated().filter { $0.element > 0 }.map(\.offset)
    }

    private struct Store: TokenStore {
        let account: Int
        let stores: AccountStores

        @concurrent func load() async -> StoredToken? {
            let row = stores.rows.withLock { $0[account] }
            guard row.number > 0 else { return nil }
            return StoredToken(
                AccountToken(account: account, number: row.number).token, received: Date(timeIntervalSince1970: row.received))
        }

        @concurrent func save(_ token: StoredToken) async throws {
            guard let number = AccountToken(token.token.refreshToken)?.number else { throw ScriptedFailure.transient }
            stores.rows.withLock { $0[account] = Row(number: number, received: token.received.timeIntervalSince1970) }
        }

        @concurrent func remove() async { stores.rows.withLock { $0[account] = Row() } }
    }
}
