/// What a factory says of itself: not its session, which holds the requests in flight with their tokens.
extension DataLoaderFactory: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Which origins get tokens.
    public var description: String { "DataLoaderFactory(\(runner.tokens.map { "\($0)" } ?? "no tokens"))" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
