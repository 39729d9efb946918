import TokenServiceConcurrency

/// What a service says of itself: neither its token nor its loader and store, which are the program's own and may hold secrets.
///
/// It is also what makes a dump safe at any moment: a mirror reads an actor's state from outside the actor.
extension TokenService: Redacted {
    package nonisolated var text: String { "TokenService" }
}
