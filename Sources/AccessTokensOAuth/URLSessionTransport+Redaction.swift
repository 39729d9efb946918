/// What a transport says of itself: never a session, which holds the requests in flight with the client's credentials.
extension URLSessionTransport: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The time limit.
    public var description: String { "URLSessionTransport(time limit \(timeLimit))" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
