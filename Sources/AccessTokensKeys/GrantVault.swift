import AccessTokens
import TokenServiceConcurrency

/// A step of work for a grant's vault.
enum VaultStep: Sendable {
    /// Keep a refresh token, which a load has brought or, with a reason, a sign-in.
    case put(AccessToken, DiscardedGrant.Reason?)
    case reset
    /// End the pause after the store's failures.
    case retry
    /// Do nothing; it completes when all steps before it are done.
    case settle

    /// Why it ends the current session; `nil`: it doesn't.
    var fence: DiscardedGrant.Reason? {
        switch self {
        case .put(_, let reason): reason
        case .reset: .signedOut
        case .settle, .retry: nil
        }
    }

    var signsOut: Bool { if case .reset = self { true } else { false } }
}

/// A vault's loader, which asks no server: a vault only has what it was given.
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

    /// The token that a vault keeps: the refresh token alone, which never expires.
    static func kept(_ token: AccessToken) -> AccessToken {
        AccessToken(placeholder).with(grantOf: token)
    }

    var withoutPlaceholder: AccessToken {
        value == Self.placeholder ? AccessToken("").with(grantOf: self) : self
    }
}

extension Result {
    /// The error, if it is one.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}

/// A vault's link to the table of grants; it keeps the grant, not the vault, alive.
final class VaultTether: ServiceTether {
    private let tether: any ServiceTether
    private let grant = Lock<WeakReference<SharedGrant>?>(nil)

    init(_ tether: any ServiceTether) {
        self.tether = tether
    }

    func attach(to grant: SharedGrant) {
        self.grant.withLock { $0 = WeakReference(object: grant) }
    }

    var isObserved: Bool { tether.isObserved }

    func announce(_ event: TokenEvent) { tether.announce(event) }

    func changed(_ service: any AnyObject & Sendable, _ rest: ServiceRest) {
        if let grant = grant.withLock({ $0?.object }) { tether.changed(grant, rest) }
    }
}
