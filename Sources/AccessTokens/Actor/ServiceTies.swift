package import TokenServiceConcurrency

/// What a service has to do with others: a store, who shares its grant, who keeps it.
package final class ServiceTies: Sendable {
    /// Where its tokens outlive it.
    package enum Keeping: Sendable {
        case nowhere
        case store(any TokenStore)
        /// In a record that it shares with other services.
        case session(any GrantSession)

        package init(_ store: (any TokenStore)?) {
            if let store { self = .store(store) } else { self = .nowhere }
        }
    }

    private let keeping: Keeping
    let onDiscard: (@Sendable (DiscardedGrant) async -> Void)?
    /// Where it says when it could be let go; `nil`: nothing asks.
    let tether: (any ServiceTether)?
    /// Who has its grant, if other services use it, too.
    let lender: (any GrantLender)?

    package init(
        _ keeping: Keeping, onDiscard: (@Sendable (DiscardedGrant) async -> Void)?, tether: (any ServiceTether)? = nil,
        lender: (any GrantLender)? = nil
    ) {
        self.keeping = keeping
        self.onDiscard = onDiscard
        self.tether = tether
        self.lender = lender
    }

    var store: (any TokenStore)? {
        switch keeping {
        case .nowhere: nil
        case .store(let store): store
        case .session(let session): session
        }
    }

    /// The way to the grant that it shares with other services.
    var session: (any GrantSession)? { if case .session(let session) = keeping { session } else { nil } }

    var hasStore: Bool { if case .nowhere = keeping { false } else { true } }

    /// How long after one look at the shared store a hit starts another.
    var checkEvery: Duration? { session?.checkEvery }
}

/// How a service that is one of many tells what it does, and when it could be let go.
package protocol ServiceTether: AnyObject, Sendable {
    /// Whether anything may listen to the events.
    var isObserved: Bool { get }

    /// Called with each event, in the service's own order.
    func announce(_ event: TokenEvent)

    /// Called in the service's own order, outside all locks, when the answer has changed.
    ///
    /// - Parameter wait: How long it takes until something would no longer be lost with the service; `nil`: until it says so.
    func changed(_ service: any AnyObject & Sendable, restingIn wait: Duration?)
}

/// A load that used a shared grant has failed.
package struct LentGrantFailure: Error {
    let cause: any Error
    /// Whether a user has signed in or out since: then it says nothing of the grant that there is now.
    let isOutdated: @Sendable () -> Bool

    package init(_ cause: any Error, isOutdated: @escaping @Sendable () -> Bool) {
        self.cause = cause
        self.isOutdated = isOutdated
    }
}

/// A load that used a shared grant has not begun, since the program is about to end and no caller waits.
package struct LoadDeserted: Error {
    package init() {}
}

/// What a key's service does with a refresh token that belongs to several keys: it hands it over.
package protocol GrantLender: AnyObject, Sendable {
    /// A user has signed in through one of the keys. Takes effect at once, for every load that begins afterwards.
    ///
    /// - Returns: Whether the service has yet to hear of a sign-out before it, through another key, and what is complete when the store
    ///   has the new grant, or has taken too long; `nil` if there is nothing to do.
    func signIn(_ token: AccessToken) -> (isSignedOut: Bool, end: SingleResult<SessionChange>?)

    /// A user has signed out of one of the keys, likewise.
    func signOut() -> SingleResult<SessionChange>?

    /// A person has asked to try again.
    func retry()

    /// Whether there was a sign-in or a sign-out.
    var wasFenced: Bool { get }
}

extension TokenService {
    /// Signs out what an earlier service of the key has left in the store, unless the user has signed in meanwhile.
    ///
    /// - Returns: `nil` if there was a fence already.
    package nonisolated func resetUnlessFenced() async -> SessionChange? {
        let fence = await visit { $0.generation == 0 && $0.ties?.lender?.wasFenced != true ? $0.signOut() : nil }
        guard let fence else { return nil }
        return await end(of: fence)
    }

    /// Drops what came of a grant that is shared, as a sign-out does, and leaves the grant, which may be a new user's.
    ///
    /// - Parameter isMeant: Asked in the service; must not take long.
    /// - Returns: `nil` if it isn't meant.
    package nonisolated func drop(
        if isMeant: @Sendable (isolated TokenService) -> Bool
    ) async -> SessionChange? {
        let fence = await visit { isMeant($0) ? $0.fence { $0.reset(at: $1) } : nil }
        guard let fence else { return nil }
        return await end(of: fence)
    }
}
