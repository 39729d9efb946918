/// What a body says of itself: its size, for a form may carry a password.
extension Request.Body: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// How long it is, or that it is a stream; not its contents.
    public var description: String {
        switch source {
        case .data(let data): "Body(\(data.count) bytes)"
        case .stream: "Body(a stream\(isReplayable ? ", replayable" : ""))"
        }
    }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
