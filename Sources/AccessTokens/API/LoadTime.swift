import TokenServiceConcurrency

/// The time left for a load.
///
/// A loader checks it before it sends anything that must not be sent late.
public enum LoadTime {
    /// Throws if the load that the current task belongs to has no time left, or if nothing waits for it any longer.
    ///
    /// A service checks this before it calls the loader. If the loader takes long before it sends a refresh token, because it
    /// opens a connection or signs the request, it should call this right before the bytes leave: meanwhile the process may have
    /// been paused, and another process that shares the grant may present the same token soon. Rethrow the error unchanged, so
    /// that the service knows that nothing was sent. With a shared grant it then counts no failure; otherwise callers get the
    /// time-out error if the load's time is over. The loaders of `AccessTokensOAuth` call it before they call their transport; a
    /// transport may call it again once it has a connection.
    ///
    /// Outside of a load it does nothing. Tasks that a loader starts inherit the load, detached ones don't.
    public static func check() throws {
        guard LoadMembership.current?.isInTime ?? true else { throw NotSent() }
    }
}
