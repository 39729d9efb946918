import AccessTokens

/// What a grant's vault has to do.
enum VaultStep: Sendable {
    /// Keep a refresh token, which a load has brought or, with a reason, a sign-in.
    case put(AccessToken, DiscardedGrant.Reason?)
    case reset
    /// End the pause after the store's failures.
    case retry
    /// Nothing: all before it is done.
    case settle

    /// Why it ends the session before it; `nil`: it doesn't.
    var fence: DiscardedGrant.Reason? {
        switch self {
        case .put(_, let reason): reason
        case .reset: .signedOut
        case .settle, .retry: nil
        }
    }

    var signsOut: Bool { if case .reset = self { true } else { false } }
}

/// A vault gets nothing from a server: what it doesn't have it was never given.
struct VaultLoader: TokenLoader {
    let isRepeatable = true

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        // A store may have a whole token, from a time when its key shared nothing.
        guard let previous, previous.refreshToken != nil else { throw NoGrant() }
        return .kept(previous)
    }
}

/// No user is signed in.
struct NoGrant: Error {}

extension AccessToken {
    private static let placeholder = "-"

    static let none = AccessToken("", lifetime: .zero)

    /// What a vault keeps: the refresh token alone, with no end.
    static func kept(_ token: AccessToken) -> AccessToken {
        AccessToken(placeholder, refreshToken: token.refreshToken)
    }

    var withoutPlaceholder: AccessToken {
        value == Self.placeholder ? AccessToken("", refreshToken: refreshToken) : self
    }
}

extension Result {
    /// The error, if it is one.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
