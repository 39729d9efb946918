import Synchronization
package import TokenServiceConcurrency

/// A service's ties to other objects: its store, other users of its grant, and the collection that keeps the service.
package final class ServiceTies: Sendable {
    private let ownStore: (any TokenStore)?
    /// The session of a grant that it shares with other services.
    let session: (any GrantSession)?
    /// Where the service keeps its grant.
    let place: GrantKeeper.Place
    let onDiscard: (@Sendable (DiscardedGrant) async -> Void)?
    /// Notified when this service may be released; `nil` for a service that isn't part of a collection.
    let tether: ServiceTether?
    /// The lender of its grant, if other services use it, too.
    let lender: (any GrantLender)?

    package init(
        _ store: (any TokenStore)?, session: (any GrantSession)? = nil,
        onDiscard: (@Sendable (DiscardedGrant) async -> Void)?, tether: ServiceTether? = nil,
        lender: (any GrantLender)? = nil
    ) {
        place =
            if let session {
                .record(checkEvery: session.checkEvery)
            } else {
                store != nil ? .store : lender != nil ? .lender : .memory
            }
        ownStore = store
        self.session = session
        self.onDiscard = onDiscard
        self.tether = tether
        self.lender = lender
    }

    deinit { tether?.send(.ended) }

    /// Where the service keeps its tokens.
    var store: (any TokenStore)? { session ?? ownStore }
}

// MARK: A service among many

/// How a service that is one of many, all with one clock, reports what it does and when it may be released.
@usableFromInline
package struct ServiceTether: Sendable {
    /// Whether anything may listen to the events.
    package let use: HubUse
    /// Called outside all locks, in the order of the service's events.
    package let send: @Sendable (ServiceReport) -> Void

    package init(use: HubUse, _ send: @escaping @Sendable (ServiceReport) -> Void) {
        self.use = use
        self.send = send
    }
}

/// The reports of a service to its tether.
@usableFromInline
package enum ServiceReport: Sendable {
    case announce(TokenEvent)
    /// The time from which the service can be released without a loss has changed; `nil`: not before its next report.
    case changed(idleFrom: Duration?, at: Duration)
    /// What the service's store has yet to save or remove has changed.
    case isBehind(FailedWrite?)
    /// The service's last owner released it; no report follows.
    case ended
}

// MARK: A grant of several keys

/// Keeps a refresh token that several keys use; their services pass sign-ins and sign-outs to it.
package protocol GrantLender: AnyObject, Sendable {
    /// A user signs in through one of the keys or, without a token, signs out of it, which ends the sessions of all keys; either
    /// takes effect at once, for every load that begins afterwards.
    ///
    /// - Parameters:
    ///   - unlessFenced: Whether to do nothing if there was a sign-in or a sign-out before.
    ///   - fence: Ends the key's own session; calls no foreign code. Called under the grant's lock, so that every key's service
    ///     meets the sign-ins and sign-outs in one order.
    /// - Returns: That fence, which also waits until the store has the change or has timed out; `nil` if there was none.
    func fence(_ token: AccessToken?, unlessFenced: Bool, _ fence: () -> TokenService.Fence?) -> TokenService.Fence?

    /// Whether there is a refresh token, after all earlier sign-ins and sign-outs.
    func signInState() async -> SignInState

    /// A caller who waits for a sign-in or a sign-out has become more urgent.
    func raise(to urgency: Urgency)

    /// The user has asked to try again.
    func retry()

    /// Saves again what its store refused, if a pause has passed.
    func saveAgain()

    /// Waits until everything has been saved, or until a limit passes.
    func drain(within limit: Duration) async -> DrainResult
}

/// A load that used a lent grant failed.
package struct LentGrantFailure: Error {
    let cause: any Error
    /// Whether a user has signed in or out since the load began, so that the failure isn't about the current grant.
    let isOutdated: @Sendable () -> Bool

    package init(_ cause: any Error, isOutdated: @escaping @Sendable () -> Bool) {
        self.cause = cause
        self.isOutdated = isOutdated
    }
}

/// A load that would use a lent grant was not started, because the service is drained and no caller waits.
package struct LoadDeserted: Error {
    package init() {}
}

extension TokenService {
    /// Signs out an earlier service of the key by removing its token from the store, unless the user has signed in since.
    ///
    /// - Returns: `nil` if there has been a fence.
    package nonisolated func resetUnlessFenced() async -> SessionChange? {
        guard let fence = fence(.signOut, in: 0, unlessFenced: true) else { return nil }
        return await finish(fence)
    }

    /// Drops everything that came from a lent grant, unless there has been a fence; then returns `nil`.
    package nonisolated func dropUnlessFenced() async -> SessionChange? {
        guard let fence = drop(at: clock.now(), as: .current, in: 0) else { return nil }
        return await finish(fence)
    }

    /// Learns what the store of a grant that several keys share has yet to save.
    ///
    /// - Parameter unsaved: Called inside the actor, so that the last report counts, in whatever order they arrive.
    package nonisolated func lenderIsBehind(_ unsaved: @Sendable () -> FailedWrite?) async {
        await visit { service in service.step { $0.noteUnsaved(unsaved(), at: $1) } }
    }

    /// Announces an event of the service that keeps this one's lent grant, in the order of this service's events and with its
    /// generation.
    package nonisolated func announce(ofOther event: TokenEvent) async {
        await visit { $0.ties?.tether?.send(.announce(event.with(generation: $0.machine.session.generation))) }
    }
}

// MARK: Events

/// Hands every event to every subscriber, each with its own bounded buffer.
package final class EventHub<Event: Sendable>: Sendable {
    private typealias Subscriber = (continuation: AsyncStream<Event>.Continuation, isMeant: @Sendable (Event) -> Bool)

    private struct Subscribers {
        var next = 0
        /// By their numbers, so that the end of one takes no longer if there are many.
        var streams: [Int: Subscriber] = [:]
    }

    private let subscribers = Lock(Subscribers())
    package let use = HubUse()

    package init() {}

    deinit {
        if use.wasUsed { for subscriber in current { subscriber.continuation.finish() } }
    }

    /// Returns a stream of the events from now on; a slow reader loses the oldest events.
    ///
    /// - Parameter isMeant: Whether the stream gets an event.
    package func subscribe(
        bufferingNewest limit: Int, where isMeant: @escaping @Sendable (Event) -> Bool = { _ in true }
    ) -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Event.self, bufferingPolicy: .bufferingNewest(max(limit, 1)))
        use.begin()
        let id = subscribers.withLock { subscribers in
            subscribers.next += 1
            subscribers.streams[subscribers.next] = (continuation, isMeant)
            return subscribers.next
        }
        continuation.onTermination = { [weak self] _ in
            // Released after unlocking: `isMeant` may hold foreign objects.
            _ = self?.subscribers.withLock { $0.streams.removeValue(forKey: id) }
        }
        return stream
    }

    /// Sends an event to every subscriber; a service sends one at a time, so all of them see the same order.
    ///
    /// - Parameter event: Made only if there is a subscriber.
    package func send(_ event: @autoclosure () -> Event) {
        // Outside the lock: resuming a reader may call its executor, which is foreign code.
        guard use.wasUsed else { return }
        for subscriber in current {
            let event = event()
            if subscriber.isMeant(event) { subscriber.continuation.yield(event) }
        }
    }

    /// In the order in which they subscribed, sorted outside the lock.
    private var current: [Subscriber] {
        subscribers.withLock { $0.streams }.sorted { $0.key < $1.key }.map(\.value)
    }
}

/// Whether there has ever been a subscriber.
///
/// Checked first: in a generic type, each access to the streams resolves their types.
@usableFromInline
package final class HubUse: Sendable {
    private let hasBegun = Atomic<Bool>(false)

    var wasUsed: Bool { hasBegun.load(ordering: .acquiring) }

    fileprivate func begin() { hasBegun.store(true, ordering: .releasing) }
}
