import TokenServiceConcurrency

/// The description has the body's size only: a form may carry a password.
extension Request.Body: Redacted {
    /// How long it is, or that it is a stream; not its contents.
    package var text: String {
        switch source {
        case .data(let data): "Body(\(data.count) bytes)"
        case .stream: "Body(a stream\(isReplayable ? ", replayable" : ""))"
        }
    }
}
