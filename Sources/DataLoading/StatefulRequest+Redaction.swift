import TokenServiceConcurrency

/// The description shows neither the request's contents and response, nor its handler's captures.
extension StatefulRequest: Redacted {
    /// The request and its state.
    package var text: String {
        let progress =
            switch state {
            case .pending: "pending"
            case .ongoing: "ongoing"
            case .completed: "completed"
            }
        return "StatefulRequest(\(request), \(progress))"
    }
}

extension StatefulRequest.States: Redacted {
    /// The request whose states they are.
    var text: String { "States(of \(request))" }
}

extension StatefulRequest.States.Iterator: Redacted {
    /// The request whose states it hands out.
    var text: String { "Iterator(of \(request))" }
}
