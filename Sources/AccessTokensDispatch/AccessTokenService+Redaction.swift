import TokenServiceConcurrency

/// What a service says of itself: neither its token nor what the waiting handlers hold.
extension AccessTokenService: Redacted {
    package var text: String { "AccessTokenService" }
}

/// What the adapter says of itself: not the program's own loader, which may hold a client's secret.
extension CallbackTokenLoader: Redacted {
    package var text: String { "CallbackTokenLoader" }
}
