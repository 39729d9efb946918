import Synchronization
import TokenServiceConcurrency

/// Hands every event to every subscriber, each with a bounded buffer of its own.
package final class EventHub<Event: Sendable>: Sendable {
    private struct Subscribers {
        var next = 0
        var streams: [(id: Int, continuation: AsyncStream<Event>.Continuation)] = []
    }

    private let subscribers = Lock(Subscribers())
    package let use = HubUse()

    package init() {}

    deinit {
        if use.wasUsed { for stream in current { stream.finish() } }
    }

    /// Returns a stream of the events from now on; a slow reader loses the oldest.
    package func subscribe(bufferingNewest limit: Int) -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self, bufferingPolicy: .bufferingNewest(max(limit, 1)))
        use.begin()
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

    /// Sends an event to every subscriber; a service sends one at a time, so all of them see the same order.
    ///
    /// - Parameter event: Made only if there is a subscriber.
    package func send(_ event: @autoclosure () -> Event) {
        // Outside the lock: resuming a reader may call its executor, which is foreign code.
        if use.wasUsed { for stream in current { stream.yield(event()) } }
    }

    private var current: [AsyncStream<Event>.Continuation] {
        subscribers.withLock { $0.streams.map { $0.continuation } }
    }
}

/// Whether there has ever been a subscriber.
///
/// Checked first: in a generic type, each access to the streams resolves their types.
@usableFromInline
package final class HubUse: Sendable {
    private let hasBegun = Atomic<Bool>(false)

    package var wasUsed: Bool { hasBegun.load(ordering: .acquiring) }

    func begin() { hasBegun.store(true, ordering: .releasing) }
}
