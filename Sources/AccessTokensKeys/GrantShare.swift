import AccessTokens
import TokenServiceConcurrency

/// One key's share in a grant that several keys use: its service's loader, which also passes on its sign-ins and sign-outs.
final class GrantShare: TokenLoader, GrantLender {
    private let grant: SharedGrant
    private let loader: any TokenLoader
    /// How long a load may keep the other keys waiting: as long as it would block another load of one service.
    private let patience: Duration
    private let member: Int

    init(in grant: SharedGrant, _ loader: any TokenLoader, _ policy: RefreshPolicy) {
        self.grant = grant
        self.loader = loader
        patience = policy.loadTimeout * (loader.isRepeatable ? 1 : RefreshPolicy.timeoutsUntilForgotten)
        member = grant.join()
    }

    deinit {
        grant.leave(member)
    }

    func attach(to service: TokenService) { grant.attach(member, to: service) }

    var isRepeatable: Bool { loader.isRepeatable }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await grant.load(replacing: previous, by: member, from: loader, patience: patience)
    }

    func signIn(_ token: AccessToken) -> (isSignedOut: Bool, end: SingleResult<SessionChange>?) {
        grant.signIn(token, by: member)
    }

    func signOut() -> SingleResult<SessionChange>? { grant.signOut(by: member) }

    func raise(to urgency: Urgency) { grant.raiseWork(to: urgency) }

    func retry() { grant.retry() }

    var wasFenced: Bool { grant.wasFenced }
}
