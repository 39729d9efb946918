import TokenServiceConcurrency

/// The description shows neither the token nor the loader and the store, which are the program's own and may hold secrets.
///
/// It is also what makes a dump safe at any moment: a mirror reads an actor's state from outside the actor.
extension TokenService: Redacted {
    package nonisolated var text: String { "TokenService" }
}
