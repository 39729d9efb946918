import TokenServiceConcurrency

/// The description shows neither the token nor the loader or the store, which belong to the program and may hold secrets.
///
/// It also makes a dump safe at any moment: a mirror would read the actor's state from outside the actor.
extension TokenService: Redacted {
    package nonisolated var text: String { "TokenService" }
}
