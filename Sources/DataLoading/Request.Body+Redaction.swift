import TokenServiceConcurrency

/// What a body says of itself: its size, for a form may carry a password.
extension Request.Body: Redacted {
    /// How long it is, or that it is a stream; not its contents.
    package var text: String {
        switch source {
        case .data(let data): "Body(\(data.count) bytes)"
        case .stream: "Body(a stream\(isReplayable ? ", replayable" : ""))"
        }
    }
}
