import TokenServiceConcurrency

/// The description shows only the body's size: a form may contain a password.
extension Request.Body: Redacted {
    /// Its length, or that it is a stream; not its contents.
    package var text: String {
        switch source {
        case .data(let data): "Body(\(data.count) bytes)"
        case .stream: "Body(a stream\(isReplayable ? ", replayable" : ""))"
        }
    }
}
