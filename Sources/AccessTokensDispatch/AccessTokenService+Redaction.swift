import TokenServiceConcurrency

/// The description shows neither the token nor the captures of waiting handlers.
extension AccessTokenService: Redacted {
    package var text: String { "AccessTokenService" }
}

/// The description leaves out the program's own loader, which may hold a client's secret.
extension CallbackTokenLoader: Redacted {
    package var text: String { "CallbackTokenLoader" }
}
