import TokenServiceConcurrency

/// Hands every event to every subscriber, each with a bounded buffer of its own.
final class EventHub: Sendable {
    private struct Subscribers {
        var next = 0
        var streams: [(id: Int, continuation: AsyncStream<TokenEvent>.Continuation)] = []
    }

    private let subscribers = Lock(Subscribers())

    deinit {
        for stream in current { stream.finish() }
    }

    /// A stream of the events from now on; a slow reader loses the oldest.
    func subscribe(bufferingNewest limit: Int) -> AsyncStream<TokenEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TokenEvent.self, bufferingPolicy: .bufferingNewest(max(limit, 1)))
        let id = subscribers.withLock { subscribers in
            subscribers.next += 1
            subscribers.streams.append((subscribers.next, continuation))
            return subscribers.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.subscribers.withLock { $0.streams.removeAll { $0.id == id } }
        }
        return stream
    }

    /// Only the actor sends, one event at a time, so every subscriber sees the same order.
    func send(_ event: TokenEvent) {
        // Outside the lock: resuming a reader may call its executor, which is foreign code.
        for stream in current { stream.yield(event) }
    }

    private var current: [AsyncStream<TokenEvent>.Continuation] {
        subscribers.withLock { $0.streams.map(\.continuation) }
    }
}
