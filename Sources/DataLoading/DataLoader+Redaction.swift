/// What a loader says of itself: not its session, which holds the requests in flight with their tokens.
///
/// On Linux reflecting a `URLSession` in flight also ends the process.
extension DataLoader: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How many requests are running.
    public var description: String { "DataLoader(\(running.count) under way)" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .class, ancestorRepresentation: .suppressed)
    }
}
