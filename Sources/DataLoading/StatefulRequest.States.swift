import TokenServiceConcurrency

extension StatefulRequest {
    /// The states of one request, from the current one to the last.
    struct States: AsyncSequence, Sendable {
        let request: StatefulRequest
        /// Whether a reader is woken for each state, and not only for the last one.
        let withProgress: Bool

        init(of request: StatefulRequest, withProgress: Bool = true) {
            self.request = request
            self.withProgress = withProgress
        }

        /// Begins with the current state.
        func makeAsyncIterator() -> Iterator { Iterator(of: request, withProgress: withProgress) }

        /// Returns states until the last one.
        struct Iterator: AsyncIteratorProtocol {
            let request: StatefulRequest
            private var seen = 0
            private var hasEnded = false
            private var changes: AsyncStream<Void>.Iterator

            init(of request: StatefulRequest, withProgress: Bool) {
                self.request = request
                changes = request.changes(withProgress: withProgress).makeAsyncIterator()
            }

            /// Returns the next state; `nil` after the last one, or when the waiting task is cancelled.
            mutating func next() async -> State? {
                while !hasEnded {
                    let (state, version) = request.inside.withLock { ($0.state, $0.version) }
                    if version > seen {
                        seen = version
                        if case .completed = state { hasEnded = true }
                        return state
                    }
                    guard await changes.next(isolation: #isolation) != nil else { return nil }
                }
                return nil
            }
        }
    }

    /// A stream with one element for one or more changes; a woken reader then reads the state itself.
    private func changes(withProgress: Bool) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let id = inside.withLock { inside in
            inside.nextObserver += 1
            inside.observers[inside.nextObserver] = Observer(wantsProgress: withProgress, changes: continuation)
            return inside.nextObserver
        }
        continuation.onTermination = { [weak self] _ in
            self?.inside.withLock { _ = $0.observers.removeValue(forKey: id) }
        }
        return stream
    }
}

extension StatefulRequest.States: Redacted {
    /// The request that these states belong to.
    var text: String { "States(of \(request))" }
}

extension StatefulRequest.States.Iterator: Redacted {
    /// The request whose states it hands out.
    var text: String { "Iterator(of \(request))" }
}
