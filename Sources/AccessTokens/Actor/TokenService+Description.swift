/// What a service says of itself: neither its token nor its loader and store, which are the program's own and may hold secrets.
///
/// It is also what makes a dump safe at any moment: a mirror reads an actor's state from outside the actor.
extension TokenService: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name.
    public nonisolated var description: String { "TokenService" }

    /// The same as ``description``: a debugger's log is a log.
    public nonisolated var debugDescription: String { description }

    /// A mirror of the description alone.
    public nonisolated var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .class, ancestorRepresentation: .suppressed)
    }
}
