public import TokenServiceConcurrency

/// What a service says of itself: neither its token nor what the waiting handlers hold.
extension AccessTokenService: Redacted {
    /// The type's name.
    public var description: String { "AccessTokenService" }
}

/// What the adapter says of itself: not the program's own loader, which may hold a client's secret.
extension CallbackTokenLoader: Redacted {
    /// The type's name.
    public var description: String { "CallbackTokenLoader" }
}
