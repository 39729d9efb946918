/// What a service says of itself: neither its token nor what the waiting handlers hold.
extension AccessTokenService: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name.
    public var description: String { "AccessTokenService" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .class, ancestorRepresentation: .suppressed)
    }
}

/// What the adapter says of itself: not the program's own loader, which may hold a client's secret.
extension CallbackTokenLoader: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The type's name.
    public var description: String { "CallbackTokenLoader" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
