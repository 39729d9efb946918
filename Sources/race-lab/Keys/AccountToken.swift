import AccessTokens

/// A token of the simulated server for accounts: whose it is, and which one of that account's.
///
/// The texts say both, so that a token in the wrong hands is seen without asking the server, and so that the server and the stores
/// remember two numbers for each account, however many tokens there were.
struct AccountToken: Equatable {
    let account: Int
    let number: UInt32

    /// How long each token is valid.
    static let lifetime = Duration.seconds(3600)

    var token: AccessToken {
        AccessToken("access \(account) \(number)", lifetime: Self.lifetime, refreshToken: "refresh \(account) \(number)")
    }

    init(account: Int, number: UInt32) {
        self.account = account
        self.number = number
    }

    /// Reads an access token's or a refresh token's text; `nil`: it isn't one of the server's.
    init?(_ text: String?) {
        let parts = text?.split(separator: " ") ?? []
        guard parts.count == 3, let account = Int(parts[1]), let number = UInt32(parts[2]) else { return nil }
        self.init(account: account, number: number)
    }
}
