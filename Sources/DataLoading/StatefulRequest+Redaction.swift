/// What a started request says of itself: neither what it sends and receives, nor what its handler holds.
extension StatefulRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The request, and how far it is.
    public var description: String {
        let progress =
            switch state {
            case .pending: "pending"
            case .ongoing: "ongoing"
            case .completed: "completed"
            }
        return "StatefulRequest(\(request), \(progress))"
    }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .class, ancestorRepresentation: .suppressed)
    }
}

extension StatefulRequest.States: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The request whose states they are.
    public var description: String { "States(of \(request))" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension StatefulRequest.States.Iterator: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The request whose states it hands out.
    public var description: String { "Iterator(of \(request))" }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
