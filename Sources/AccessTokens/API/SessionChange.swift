public import TokenServiceConcurrency

/// The result of ``TokenService/reset()`` or ``TokenService/replace(with:)``: the tokens given up, and whether the store failed.
public struct SessionChange: Sendable {
    /// The tokens that the service and its store gave up.
    ///
    /// After a reset, revoke their refresh tokens (RFC 7009). After a replacement, read ``DiscardedGrant/Reason/replaced`` first.
    /// A service with `onDiscard` has passed them to that closure, too.
    public let discarded: [AccessToken]

    /// Why the store may not have done what was asked; `nil` if it has.
    ///
    /// After a reset: the next run of the program may find the old token, or the store has removed a token that it could not
    /// read, which therefore can't be revoked. After a replacement: the next run may not find the new token, or it was saved over
    /// another service's, as the error then says. An operation that takes longer than 5 s continues, and may still succeed.
    public let storeFailure: TokenServiceError?

    package init(discarded: [AccessToken], storeFailure: TokenServiceError?) {
        self.discarded = discarded
        self.storeFailure = storeFailure
    }
}

/// The result of ``TokenService/drain(within:)``: whether all work has ended, and what the stores don't have.
public struct DrainResult: Sendable {
    /// Whether no load and no operation of a store is under way any longer.
    ///
    /// If one is, ending the program may lose the refresh token that it brings. Loads and operations that count as lost aren't
    /// waited for.
    public let hasEnded: Bool

    /// The last change of each store that isn't known to have taken effect.
    public let unsaved: [UnsavedChange]

    /// Whether the program can end without a loss: everything has ended and is saved.
    public var isComplete: Bool { hasEnded && unsaved.isEmpty }

    package init(hasEnded: Bool = true, unsaved: [UnsavedChange] = []) {
        self.hasEnded = hasEnded
        self.unsaved = unsaved
    }

    /// The result of two that were drained.
    package static func + (left: Self, right: Self) -> Self {
        Self(hasEnded: left.hasEnded && right.hasEnded, unsaved: left.unsaved + right.unsaved)
    }
}

/// A token that a store may not have saved, or a sign-out that it may not know.
public struct UnsavedChange: Sendable {
    /// The token that the store should have; `nil` after a sign-out, when it should have none.
    public let token: AccessToken?

    /// Why the last attempt failed; `nil`: it is the first and hasn't ended.
    public let error: TokenServiceError?

    package init(token: AccessToken?, error: TokenServiceError?) {
        self.token = token
        self.error = error
    }
}

/// A token that a service gave up and whose grant may still be good at the authorization server.
///
/// The service hands it to the closure `onDiscard` of its `init`, so that the program can revoke it (RFC 7009).
public struct DiscardedGrant: Sendable {
    /// Why a token was given up, as a value to compare.
    public struct Reason: Sendable, Hashable, Described {
        /// A sign-out gave up the service's or its store's token, or the token arrived later from a load that the sign-out cut
        /// off.
        public static let signedOut = Reason(text: "signedOut")
        /// ``TokenService/replace(with:)`` put another token in its place, or cut off the load that brought it.
        ///
        /// Think before you revoke it: some servers then end the whole session, including the new token.
        public static let replaced = Reason(text: "replaced")
        /// Two loads brought a token, one of them after it had timed out, and the service uses the other token.
        ///
        /// With a shared grant also: another service's sign-in, sign-out or later token has overtaken it, or the record can't hold
        /// it.
        public static let superseded = Reason(text: "superseded")

        package let text: String
    }

    /// The token, with the refresh token to revoke.
    public let token: AccessToken

    /// Why it was given up.
    public let reason: Reason

    package init(token: AccessToken, reason: Reason) {
        self.token = token
        self.reason = reason
    }
}
