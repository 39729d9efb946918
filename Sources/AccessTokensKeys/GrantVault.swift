import AccessTokens
import TokenServiceConcurrency

/// A step of work for a grant's vault.
enum VaultStep: Sendable {
    /// Keep a sign-in's refresh token.
    case signIn(AccessToken)
    /// Keep the grant that a load has brought in place of the refresh token that it has spent.
    case keep(AccessToken, spent: String?)
    case reset
    /// End the pause after the store's failures.
    case retry
    /// Save again what the store refused, if the pause has passed; it completes when all steps before it are done.
    case settle

    /// The reason why the step ends the current session; `nil`: it doesn't.
    var fence: DiscardedGrant.Reason? {
        switch self {
        case .signIn: .replaced
        case .reset: .signedOut
        case .keep, .retry, .settle: nil
        }
    }

    var signsOut: Bool { if case .reset = self { true } else { false } }
}

/// A vault's loader, which asks no server: a vault's tokens come only from sign-ins, the keys' loads and the store.
struct VaultLoader: TokenLoader {
    /// So that a store that can't be read doesn't count as an empty one.
    let isRepeatable = false

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { throw NoGrant() }
}

/// A vault's store, whose refresh tokens never expire, so that the vault loads none.
///
/// The store may hold a whole token from a time when the key had its own grant.
struct VaultStore: TokenStore {
    let store: any TokenStore

    @concurrent func load() async throws -> StoredToken? {
        try await store.load().map { StoredToken($0.token.lasting, received: $0.received) }
    }

    @concurrent func save(_ token: StoredToken) async throws { try await store.save(token) }
    @concurrent func remove() async throws { try await store.remove() }
}

/// Passes to the program the tokens that a vault gives up, however late, except refresh tokens that loads have spent.
final class GrantOutlet: Sendable {
    private let onDiscard: @Sendable (DiscardedGrant) async -> Void
    /// The spent refresh tokens that the vault is about to give up.
    private let spent = Lock<[String]>([])

    init(_ onDiscard: @escaping @Sendable (DiscardedGrant) async -> Void) {
        self.onDiscard = onDiscard
    }

    /// Notes that the vault is about to replace this spent refresh token with its successor.
    func expect(_ token: String?) {
        if let token { spent.withLock { $0.append(token) } }
    }

    @Sendable func discard(_ grant: DiscardedGrant) async {
        let isSpent = spent.withLock { spent in
            let index = spent.firstIndex { $0 == grant.token.refreshToken }
            return index.map { spent.remove(at: $0) } != nil
        }
        if !isSpent { await onDiscard(DiscardedGrant(token: grant.token.withoutPlaceholder, reason: grant.reason)) }
    }
}

/// No user is signed in.
struct NoGrant: TokenLoadFailure {
    let remedy = TokenServiceError.Remedy.retry
    let mayBeUnderWay = false
}

extension AccessToken {
    private static let placeholder = "-"

    static func none(after grant: AccessToken?) -> AccessToken {
        AccessToken("", lifetime: .zero, members: grant?.members ?? [:])
    }

    /// The token that a vault keeps: the refresh token and the members alone, which never expire.
    static func kept(_ token: AccessToken) -> AccessToken {
        AccessToken(placeholder, members: token.members).with(grantOf: token)
    }

    /// The same token without an expiration, if it has a refresh token.
    fileprivate var lasting: AccessToken {
        refreshToken == nil ? self : AccessToken(value.isEmpty ? Self.placeholder : value, members: members).with(grantOf: self)
    }

    var withoutPlaceholder: AccessToken {
        value == Self.placeholder ? AccessToken("", members: members).with(grantOf: self) : self
    }
}

extension Result {
    /// The error, if it is one.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}

/// A reference to the grant that owns a vault, set later because the vault is created first.
final class VaultOwner: Sendable {
    private let grant = Lock<WeakReference<LentGrant>?>(nil)

    func attach(to grant: LentGrant) {
        self.grant.withLock { $0 = WeakReference(object: grant) }
    }

    /// Returns the vault's tether, with which the keys' services learn of a failing store.
    func tether(_ tether: ServiceTether) -> ServiceTether {
        ServiceTether(use: tether.use) { [self] report in
            guard case .isBehind(let unsaved) = report else { return tether.send(report) }
            grant.withLock { $0?.object }?.note(unsaved)
        }
    }
}

/// The pending steps of a grant's vault, and the task that performs them: a pure value behind the grant's lock.
struct GrantWork: Sendable {
    struct Item: Sendable {
        let step: VaultStep
        /// The tokens that the other keys' services give up when notified of a sign-in or a sign-out.
        let others: SingleResult<[AccessToken]>?
        let end: SingleResult<SessionChange>
    }

    private var items: [Item] = []
    private var isUnderWay = false
    /// The task that does the work, with the urgency of its most urgent waiter.
    private var worker: Task<Void, any Error>?
    private var urgency = Urgency.background

    /// Whether nothing is left to do.
    var isDone: Bool { !isUnderWay }

    /// Adds an item at the end; returns whether a task has to begin for it.
    mutating func append(_ item: Item, as urgency: Urgency) -> Bool {
        items.append(item)
        guard !isUnderWay else { return false }
        (isUnderWay, self.urgency) = (true, urgency)
        return true
    }

    /// Stores the task that has begun; returns the urgency that it now needs.
    mutating func began(_ worker: Task<Void, any Error>) -> Urgency {
        self.worker = worker
        return urgency
    }

    /// Returns the task to make more urgent, if it is less urgent.
    mutating func raise(to urgency: Urgency) -> Task<Void, any Error>? {
        guard isUnderWay, self.urgency < urgency else { return nil }
        self.urgency = urgency
        return worker
    }

    /// Takes the next item; `nil`: the task ends.
    mutating func next() -> Item? {
        guard items.isEmpty else { return items.removeFirst() }
        (isUnderWay, worker) = (false, nil)
        return nil
    }
}
