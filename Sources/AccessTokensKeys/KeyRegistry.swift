import AccessTokens
public import TokenServiceConcurrency

/// The table of ``TokenServices`` behind its lock; the services know it without keeping it alive.
@usableFromInline
final class KeyRegistry<Key: Hashable & Sendable, Service: AnyObject & Sendable>: Sendable {
    let clock: ServiceClock
    /// Where its services' events go.
    let hub: EventHub<KeyEvent<Key>>
    /// Which of them: the program sees nothing of what a service does that it can't see.
    let announces: @Sendable (TokenEvent.Name) -> Bool
    @usableFromInline let table: Lock<KeyTable<Key, Service>>

    init(
        keepingIdle limit: Int, clock: ServiceClock, hub: EventHub<KeyEvent<Key>>,
        announces: @escaping @Sendable (TokenEvent.Name) -> Bool = { _ in true }
    ) {
        self.clock = clock
        self.hub = hub
        self.announces = announces
        table = Lock(KeyTable(keepingIdle: limit))
    }

    /// Changes the table; what it gives up is released by the caller, after the lock.
    func withTable<Outcome: Sendable>(_ body: @Sendable (inout KeyTable<Key, Service>) -> Outcome) -> Outcome {
        table.withLock { body(&$0) }
    }

    /// The service of a key, if there is one.
    func find(_ key: Key) -> Service? {
        let (service, released) = table.withLock { $0.find(key) }
        // What is over the bound now ends here, outside the lock, which its end needs, too.
        _ = released
        return service
    }

    /// Makes a service outside the lock, since all that it is made of is the program's own code.
    func insert(_ key: Key, made make: (_ tether: KeyTether<Key, Service>, _ stamp: Int) -> Service) -> Service {
        let stamp = withTable { $0.begin(key) }
        let tether = KeyTether(self, key: key, stamp: stamp)
        let made = make(tether, stamp)
        tether.attach(to: made)
        let now = clock.now()
        return withTable { $0.insert(made, stamp: stamp, for: key, at: now) }.service
    }
}

/// What one service of a key knows of the table.
///
/// The service holds it, and nothing else does: its end is the service's end. The key's entry goes with it, unless another service
/// has taken its place.
final class KeyTether<Key: Hashable & Sendable, Service: AnyObject & Sendable>: ServiceTether {
    private weak let registry: KeyRegistry<Key, Service>?
    private let key: Key
    private let stamp: Int
    private let service = Lock<WeakReference<Service>?>(nil)

    init(_ registry: KeyRegistry<Key, Service>, key: Key, stamp: Int) {
        self.registry = registry
        self.key = key
        self.stamp = stamp
    }

    deinit {
        registry?.withTable { [key, stamp] in $0.ended(stamp: stamp, of: key) }
    }

    func attach(to service: Service) {
        self.service.withLock { $0 = WeakReference(object: service) }
    }

    func announce(_ event: TokenEvent) {
        guard let registry, registry.announces(event.name) else { return }
        registry.hub.send(KeyEvent(key: key, event: event))
    }

    func changed(restingIn wait: Duration?) {
        guard let registry, let service = service.withLock({ $0?.object }) else { return }
        let now = registry.clock.now()
        let end = wait.map { now + $0 }
        _ = registry.withTable { [key, stamp] in $0.changed(service, stamp: stamp, of: key, restingFrom: end, at: now) }
    }
}
