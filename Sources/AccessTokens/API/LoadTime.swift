/// The time that a load has, for its loader to check before it sends something that must not be sent too late.
public enum LoadTime {
    /// Throws if the load that the current task is part of has no time left, or nothing waits for it any longer.
    ///
    /// A service checks that before it calls the loader. If the loader takes long before it sends a refresh token, because it
    /// opens a connection or signs the request, it should call this right before the bytes leave: the process may have been
    /// paused meanwhile, and another process that shares the grant may present the same token soon. Throw the error as it is.
    /// Then the service knows that nothing was sent. With a shared grant it counts no failure; otherwise callers get the time-out
    /// error if the load's time is over. The loaders of `AccessTokensOAuth` call
    /// it before they call their transport, and a transport may call it again when it has a connection.
    ///
    /// Outside of a load it does nothing. Tasks that a loader starts inherit the load, detached ones don't.
    public static func check() throws {
        guard LoadMembership.current?.isInTime ?? true else { throw NotSent() }
    }
}
